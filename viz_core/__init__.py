"""Attention, positions and the trace: everything a notebook needs, without Streamlit."""
