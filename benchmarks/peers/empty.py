"""The least Streamlit app there is: what every start pays for."""

import streamlit as st

st.title("Hello")
