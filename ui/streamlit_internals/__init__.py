"""Every private name of Streamlit that the project uses."""
