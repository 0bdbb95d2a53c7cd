"""The door where strangers visit: app.py under the hosted profile. `python hosted.py`, or `make host`."""

import os

import streamlit as st
from streamlit import config

from hosting.profile import profile

os.environ.setdefault("ATLAS_HOSTED", "1")
app = st.App("app.py")

if __name__ == "__main__":
    # Secrets are left to Streamlit, which reads them from the environment itself.
    variables = {name: o.env_var for name, o in config.get_config_options().items() if not o.sensitive}
    app.run(config=profile(variables))
