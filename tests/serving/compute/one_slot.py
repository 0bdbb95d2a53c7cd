"""A page for test_stopping.py: with ?stay it computes until it is stopped, else it answers at once."""

import streamlit as st

from ui.compute.slots import run_in_slot
from viz_core.runtime.hooks import may_end


def endless() -> str:
    while True:
        may_end()


st.write(run_in_slot(endless if "stay" in st.query_params else lambda: "served", "work"))
