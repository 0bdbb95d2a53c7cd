"""The server process: life cycle, background work, garbage collection, home folder, Streamlit options."""
