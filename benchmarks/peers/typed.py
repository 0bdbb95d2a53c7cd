"""As many elements as an answer of the Transformer chapter has, drawn again for each sentence, and no work."""

import streamlit as st

TEXTS = 14


@st.fragment
def answer() -> None:
    with st.container(border=True):
        with st.container(horizontal=True):
            text = st.text_input("An English sentence", "He is calm.")
            st.button("Translate", type="primary")
            st.segmented_control("Search", ["greedy", "beam 4"], default="greedy")
        st.radio("Examples", [f"Sentence {n}" for n in range(9)], horizontal=True)
        with st.container(horizontal=True), st.container(), st.container():
            st.segmented_control("Break it", ["nothing", "no mask"], default="nothing")
        with st.expander("2 checks"):
            for n in range(TEXTS):
                st.markdown(f"{text} {n}")


st.title("The Transformer")
answer()
