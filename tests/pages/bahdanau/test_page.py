"""The Bahdanau chapter through AppTest: steps, claims, the opening sentence, and what a link may ask for."""

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from tests.pages.reading import printed, texts
from tests.visits import Visits
from viz_core.pretrained import load
from viz_core.pretrained.samples import sentence

OpenPage = Callable[..., AppTest]
SAMPLE = sentence("cat")


def test_the_sample_is_translated_and_both_models_have_their_cards(visits: Visits) -> None:
    names = ("seq2seq-en-fr", "bahdanau-en-fr")
    shown = texts(visits("bahdanau", **{f"b-card-{name}": "true" for name in names}))
    assert f"## {load('bahdanau-en-fr').translate(SAMPLE).text}" in shown
    for name in names:
        assert f"{load(name).card.scores['bleu_greedy']:.1f} with greedy search" in shown


def test_the_map_names_what_the_plain_model_writes_and_the_book_agrees(visits: Visits) -> None:
    app = visits("bahdanau")
    assert f"*{load('seq2seq-en-fr').translate(SAMPLE).text}*" in texts(app)
    agree = {"(4, 7, 10)", "(4, 7, 16)", "(4, 16)", "0.658"}
    assert {what for what, verdict in printed(app) if verdict == "agrees"} == agree
    assert [what for what, verdict in printed(app) if verdict == "run"] == ["256, 256, 2, 0.2, 0.005"]


def test_nonsense_gets_a_sentence_or_a_translation(open_page: OpenPage) -> None:
    app = open_page("bahdanau", **{"open-all": "false"})
    for text in ("   ", "😀😀", "x" * 3000, "<script>alert(1)</script>", "مرحبا"):
        app.text_input(key="b-text").set_value(text).run()
        assert not app.exception
        assert app.text_input(key="b-text").value == text
