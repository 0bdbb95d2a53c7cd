"""What a chapter cannot do without, of Streamlit's own parts alone: a table of contents, words, six controls."""

import streamlit as st

CHAPTERS = 14


def chapter() -> None:
    st.title("The Transformer")
    st.markdown("A question of **two** lines, with a formula $QK^\\top$ in it, that stands under the title of a page.")
    left, right = st.columns(2)
    left.text_input("A sentence", "He is calm.")
    right.selectbox("Beam", [1, 2, 4])
    st.radio("Shown", ["maps", "words"], horizontal=True)
    st.markdown("What to look for, under a picture.")
    with st.sidebar:
        st.badge("2 cores", icon=":material/memory:")
        st.selectbox("Language", ["English", "Português"])
        st.button("Share", icon=":material/share:")


pages = [
    st.Page(chapter, title=f"Chapter {n}", url_path=f"chapter-{n}", icon=":material/memory:", default=n == 0)
    for n in range(CHAPTERS)
]
st.navigation(pages).run()
