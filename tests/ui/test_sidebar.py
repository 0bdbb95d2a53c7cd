"""The language of the address, the switch and the browser, and the sentence that chapters share."""

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import ui.text.words
from ui.text.words import load_words

DOOR = Path(__file__).resolve().parents[2] / "ui" / "app" / "main.py"
HOME = "---\ntitle: Atlas da Atenção\n---\n## question\nPara onde ela olha?\n"
COMMON = "---\ntitle: x\n---\n## language-name\nPortuguês (Brasil)\n\n## language\nIdioma\n"


@pytest.fixture(autouse=True)
def another_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for language in ("en", "pt-BR"):
        (tmp_path / "text" / language).mkdir(parents=True)
    shutil.copytree(ui.text.words.TEXT / "en", tmp_path / "text" / "en", dirs_exist_ok=True)
    for name, text in (("home", HOME), ("common", COMMON)):
        (tmp_path / "text" / "pt-BR" / f"{name}.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(ui.text.words, "TEXT", tmp_path / "text")


def opened(locale: str, **params: str) -> AppTest:
    app = AppTest.from_file(str(DOOR), default_timeout=600)
    app.context["locale"] = locale
    for name, value in params.items():
        app.query_params[name] = value
    return app.run()


def test_the_address_says_it_and_the_switch_shows_it() -> None:
    app = opened("en-GB", lang="pt-BR")
    assert app.title[0].value == "Atlas da Atenção"
    switch = app.selectbox(key="language-switch")
    assert (switch.value, switch.label, switch.options) == ("pt-BR", "Idioma", ["English", "Português (Brasil)"])
    assert app.query_params["lang"] == "pt-BR"
    captions = [caption.value for caption in opened("en", lang="tlh").sidebar.caption]
    assert "The Atlas is not available in tlh yet; here is English." in captions


@pytest.mark.parametrize(
    ("locale", "title"), [("pt-BR", "Atlas da Atenção"), ("pt", "Atlas da Atenção"), ("fr-FR", "")]
)
def test_else_the_browser_says_it(locale: str, title: str) -> None:
    app = opened(locale)
    assert app.title[0].value == (title or load_words("home", "en").title)
    assert "lang" not in app.query_params


def page() -> None:
    """Two chapters' lines, one after the other; the second begins with what the first one holds."""
    import streamlit as st

    from ui.text.words import Words
    from ui.widgets.controls import Controls
    from ui.widgets.inputs import shared_text_input

    for chapter in ("bahdanau", "transformer"):
        words = Words(chapter, {"controls": {"text": "A sentence"}}, {})
        st.write(f"{chapter}: {shared_text_input(Controls(words), 'text', 'Go.', '')}")


def opened_with(**params: str) -> AppTest:
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
    app = opened_with(**params)
    assert [element.value for element in app.markdown] == [
        f"bahdanau: {expected[0]}".strip(),
        f"transformer: {expected[1]}",
    ]
    if expected[0] == expected[1] != "Go.":
        assert app.query_params["t-text"] in (expected[1], [expected[1]]), "a copied link shows the same"
