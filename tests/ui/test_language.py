"""The language of a page: of the address, of the switch, of the browser; and it goes along."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("locale", "title"), [("pt-BR", "Atlas da Atenção"), ("pt", "Atlas da Atenção"), ("fr-FR", "")]
)
def test_else_the_browser_says_it(locale: str, title: str) -> None:
    app = opened(locale)
    assert app.title[0].value == (title or load_words("home", "en").title)
    assert "lang" not in app.query_params


def test_a_choice_goes_into_the_address_and_along_to_other_pages() -> None:
    app = opened("en")
    app.selectbox(key="language-switch").set_value("pt-BR").run()
    assert app.title[0].value == "Atlas da Atenção"
    assert app.query_params["lang"] == "pt-BR"
    del app.query_params["lang"]  # as on the way to another chapter
    app.run()
    assert app.title[0].value == "Atlas da Atenção"
    assert app.query_params["lang"] == "pt-BR"
    app.selectbox(key="language-switch").set_value("en").run()
    assert app.title[0].value == load_words("home", "en").title
    assert "lang" not in app.query_params


def test_what_is_not_spoken_is_told() -> None:
    app = opened("en", lang="tlh")
    captions = [caption.value for caption in app.sidebar.caption]
    assert "The Atlas is not available in tlh yet; here is English." in captions
