"""Words with their probabilities on the Transformer page: numbers of the recorded pass, markup that is text."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from pages.transformer.decoding import percent, table_of_words
from tests.pages.reading import finding, stands, texts
from viz_core.pretrained import Translator, load_translator
from viz_core.pretrained.word_probabilities import Rival, WordProbability

OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="module")
def translator() -> Translator:
    return load_translator("transformer-en-fr")


def lines_of_words(app: AppTest) -> list[str]:
    return [element.proto.body for element in app.get("html") if 'class="predicted"' in element.proto.body]


def test_words_rivals_and_where_it_hesitates(open_page: OpenPage, translator: Translator) -> None:
    text = "The dog i saw bit <b>Zorglub</b>."
    app = open_page("transformer", **{"t-text": text})
    stands(app)
    result = translator.translate(text)
    (line,) = lines_of_words(app)
    shown = re.findall(r"-tip\"><span><bdi>(.*?)</bdi>.*?<small>(.*?)</small>", line)
    assert shown == [(html.escape(word.text), percent(word.probability)) for word in result.words]
    assert line.count('tabindex="0"') == line.count('role="tooltip"') == len(result.words)
    for word in result.words:
        for rival in word.rivals:
            assert f"<bdi>{html.escape(rival.text)}</bdi> <span>{percent(rival.probability)}</span>" in line
    unsure = sum(word.is_uncertain for word in result.words)
    assert line.count("predicted-unsure") == unsure
    assert finding(app, f"{unsure} of {len(result.words)} words have less than 50%", "words have at least 50%")
    assert "fewer than 5 of 110,893 training sentences: **i** (never)" in texts(app)
    assert "**Zorglub** (never)" in texts(app)
    app.text_input(key="t-text").set_value("The cat is sleeping.").run()
    assert "training sentences: **" not in texts(app)


def test_a_table_has_a_row_for_each_word(translator: Translator) -> None:
    result = translator.translate("I lost.")
    table = table_of_words(result.words)
    assert list(table["word"]) == [word.text for word in result.words]
    assert list(table["probability"]) == [word.probability for word in result.words]
    assert list(table["p(rival 5)"]) == [word.rivals[4].probability for word in result.words]
    short = table_of_words([replace(result.words[0], rivals=(Rival("a", 0.25),)), WordProbability("b", 0.5, (), ())])
    assert short.to_csv(index=False).splitlines()[2] == "b,0.5,False,,"


@pytest.mark.parametrize(
    ("p", "label"),
    [
        (1.0, "100%"),
        (0.5, "50%"),
        (0.0996, "10%"),
        (0.0994, "9.9%"),
        (0.0005, "0.1%"),
        (0.0004, "< 0.1%"),
        (0, "< 0.1%"),
    ],
)
def test_percents(p: float, label: str) -> None:
    assert percent(p) == label
