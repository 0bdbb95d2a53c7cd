"""A sentence that goes along: what the next chapter begins with."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def page() -> None:
    """Two chapters' lines, one after the other; the second begins with what the first one holds."""
    import streamlit as st

    from ui.text.words import Words
    from ui.widgets.controls import Controls
    from ui.widgets.inputs import shared_text_input

    for chapter in ("bahdanau", "transformer"):
        words = Words(chapter, {"controls": {"text": "A sentence"}}, {})
        st.write(f"{chapter}: {shared_text_input(Controls(words), 'text', 'Go.', '')}")


def opened(**params: str) -> AppTest:
    app = AppTest.from_function(page)
    for name, value in params.items():
        app.query_params[name.replace("_", "-")] = value
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, ["Go.", "Go."]),
        ({"b_text": "I lost."}, ["I lost.", "I lost."]),
        ({"b_text": "I lost.", "t_text": "Run!"}, ["I lost.", "Run!"]),
        ({"b_text": "x" * 301}, ["x" * 301, "Go."]),
        ({"b_text": "  "}, ["", "Go."]),
    ],
)
def test_the_next_chapter_begins_with_what_was_typed_unless_its_address_says_otherwise(
    params: dict[str, str], expected: list[str]
) -> None:
    app = opened(**params)
    assert [element.value for element in app.markdown] == [
        f"bahdanau: {expected[0]}".strip(),
        f"transformer: {expected[1]}",
    ]


def test_a_sentence_that_came_along_is_in_the_address() -> None:
    app = opened(b_text="I lost.")
    assert app.query_params["t-text"] in ("I lost.", ["I lost."])


def left_at_once() -> None:
    """A chapter whose run a link ends before its line is drawn, and the next one."""
    import streamlit as st

    from ui.text.words import Words
    from ui.widgets.controls import Controls
    from ui.widgets.inputs import set_text, shared_text_input

    if st.button("home", on_click=set_text, args=("b-text", "I'm home.")):
        st.stop()
    chapter = "transformer" if "thread" in st.session_state else "bahdanau"
    words = Words(chapter, {"controls": {"text": "A sentence"}}, {})
    st.write(f"{chapter}: {shared_text_input(Controls(words), 'text', 'Go.', '')}")


def test_what_a_button_has_set_goes_along_though_the_reader_leaves_before_it_is_drawn() -> None:
    app = AppTest.from_function(left_at_once).run()
    assert [element.value for element in app.markdown] == ["bahdanau: Go."]
    app.button[0].click().run()
    app.run()
    assert [element.value for element in app.markdown] == ["transformer: I'm home."]
