"""The door for yourself: `streamlit run app.py`, or `make run`."""

import streamlit as st

app = st.App("ui/door.py")
