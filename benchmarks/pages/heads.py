"""The attention view over 12 layers of 12 heads and `?n=` tokens. The forward is done: press the button, it opens."""

import streamlit as st

from benchmarks.random_models import random_trace
from serving.process.background import freeze_imported_modules
from ui.widgets.attention_view import MapGroup, attention_view
from viz_core.trace import Trace

freeze_imported_modules()  # as every chapter does


@st.cache_resource(show_spinner=False, max_entries=2)
def recorded(n: int) -> Trace:
    return random_trace(n)


n = int(st.query_params.get("n", 8))
trace = recorded(n)  # before anyone looks
if st.button("Show"):
    tokens = tuple(f"w{i}" for i in range(n))
    st.session_state.group = MapGroup("self", "self-attention", "queries", "keys", tokens, tokens, tuple(trace))
if "group" in st.session_state:
    attention_view([st.session_state.group])
