"""As many elements as a chapter has around its first picture, of Streamlit's own parts alone.

Chapters have 14 to 27 in 12 to 25 containers, the median is 20 in 20, and a table of contents; here are 19 in 18. Where
a chapter has a component of its own there is a line of HTML here, and no picture at all.
"""

import streamlit as st

CHAPTERS = 14


def chapter() -> None:
    for name in ("scripts", "labels", "history"):
        st.container(key=name).html("<span></span>")
    with st.sidebar, st.container(key="foot"):
        st.selectbox("Language", ["English", "Português"])
        st.caption("All state is in the address bar: copy it to share this view.")
        st.html("<span></span>")
        st.button("Share", icon=":material/share:")
    st.title("Multi-head attention")
    st.container(key="path").html("<nav><ol><li></li><li></li></ol></nav>")
    with st.container(key="repeat"):
        st.popover("Two questions", type="tertiary")
    st.container(key="question").markdown("A question of one line, that stands under the title of a page.")
    with st.container(horizontal=True, key="definition"):
        st.markdown("In **self-attention**, queries, keys and values come from one sentence, and a head weighs words.")
        st.markdown(r"$$\text{head}_i = \text{softmax}\!\left(Q_i K_i^\top / \sqrt d\right) V_i$$")
    with st.container(border=True, key="card"), st.container(), st.container():
        with st.container(horizontal=True, key="controls"):
            st.container().text_input("A sentence", "He is calm.")
            st.container().number_input("Head", 1, 8)
            with st.popover("More"):
                st.segmented_control("Shown", ["maps", "words"])
            st.container()
        st.markdown("The self-attention of one layer of the translator, over the words of the sentence.")
        st.segmented_control("Colours", ["one scale", "each row"])
        st.container(key="figure").html("<p>A picture</p>")
        st.markdown("**What to look for.** Change **heads**, and see how the matrices are split.")


pages = [
    st.Page(chapter, title=f"Chapter {n}", url_path=f"chapter-{n}", icon=":material/memory:", default=n == 0)
    for n in range(CHAPTERS)
]
st.navigation(pages).run()
