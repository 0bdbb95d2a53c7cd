"""The door of Attention Atlas."""

import streamlit as st

from ui.contents import pages

st.set_page_config(page_title="Attention Atlas", page_icon="assets/components/logo.svg", layout="wide")
st.navigation(pages()).run()
