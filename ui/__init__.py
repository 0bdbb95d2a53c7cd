"""The Streamlit parts that chapters share."""
