"""The door for yourself: `streamlit run app.py`, or `make run`."""

import streamlit as st

from hosting import scripts

app = st.App("ui/door.py", routes=scripts.routes())
