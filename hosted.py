"""The door where strangers visit: app.py under the hosted profile. `python hosted.py`, or `make host`."""

import os

import streamlit as st

from hosting.profile import profile

os.environ.setdefault("ATLAS_HOSTED", "1")
app = st.App("app.py")

if __name__ == "__main__":
    app.run(config=profile())
