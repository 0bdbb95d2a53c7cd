"""The Transformer chapter: translations, refusals and claims, and what it says of its pictures."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from serving.compute.slots import reset_singletons
from tests.pages.reading import claim_names, drawn, finding, number, one_line, stands, texts
from tests.visits import Visits
from ui.text.numbers import localised
from viz_core.pretrained import CHECKPOINTS, Translator, load, load_translator, shipped
from viz_core.pretrained.bleu import book_bleu, sentence_bleu

NAME = "transformer-en-fr"
OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="module")
def translator() -> Translator:
    """The model that ships."""
    return load_translator("transformer-en-fr")


@pytest.fixture
def broken_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the shipped model to break; no cached model gets in its way."""
    folder = tmp_path / NAME
    shutil.copytree(CHECKPOINTS / NAME, folder)
    monkeypatch.setattr(shipped, "CHECKPOINTS", tmp_path)
    reset_singletons()
    yield folder
    reset_singletons()


def test_something_is_there_before_anything_is_typed(visits: Visits, translator: Translator) -> None:
    app = visits("transformer")
    result = translator.translate("The black cat is sleeping on my bed.")
    assert f"## {result.text}" in texts(app)
    assert f"−{-result.log_probability:.2f}" in texts(app)


def test_a_sentence_typed_is_translated(open_page: OpenPage, translator: Translator) -> None:
    app = open_page("transformer")
    app.text_input(key="t-text").set_value("I am happy.").run()
    assert f"## {translator.translate('I am happy.').text}" in texts(app)
    app.text_input(key="t-second").set_value("She is happy.").run()  # to compare with: both translations are there
    for text in ("I am happy.", "She is happy."):
        assert f"## {translator.translate(text).text}" in texts(app)


def test_presets_come_with_the_books_bleu_and_sacrebleu(open_page: OpenPage, translator: Translator) -> None:
    app = open_page("transformer")
    app.radio(key="t-preset").set_value("home").run()
    result = translator.translate("I'm home.")
    reference = "Je suis chez moi."
    assert f"**{book_bleu(result.text.lower().split(), reference.lower().split()):.3f}**" in texts(app)
    assert f"**{sentence_bleu(result.text, [reference]):.1f}**" in texts(app)


def test_claims_hold_and_show_their_residual(visits: Visits, translator: Translator) -> None:
    app = visits("transformer", **{"t-text": "Go."})
    claims = [m.value for m in app.markdown if m.value.startswith((":green[", ":orange["))]
    assert set(claim_names(app)) >= {"rows", "future", "leak", "cache", "walk", "twin"}
    assert all("material/check" in claim for claim in claims)
    residual = translator.translate("Go.").cache_error
    shown = localised(f"{residual:.2g}", "en")
    assert any(f"`{shown}`" in claim for claim in claims)


def test_text_that_cannot_be_translated_gets_a_sentence(open_page: OpenPage) -> None:
    """No two that get the same sentence follow each other."""
    app = open_page("transformer")
    for text, sentence in (
        ("", "There is nothing to translate yet"),
        ("a" * 2001, "2,001 characters; at most 2,000"),
        ("   \t ", "There is nothing to translate yet"),
        ("😀🎉🚀", "knows no word or sign"),
        ("\x00\x07\x1b", "There is nothing to translate yet"),
        ("שלום עולם", "knows no word or sign"),
        ("I " * 999, "tokens; the model takes at most"),
    ):
        app.text_input(key="t-text").set_value(text).run()
        assert not app.exception
        assert sentence in app.warning[0].value.replace("\\", "")
        assert app.text_input(key="t-text").value == text  # nothing lost of what was typed
        assert "The black cat" in app.warning[0].value, "the page stays whole, with the last sentence"
        assert app.radio(key="t-guess-shape").options
        assert app.get("expander")


def test_a_missing_file_is_a_sentence(broken_checkpoint: Path, open_page: OpenPage) -> None:
    (broken_checkpoint / "model.safetensors").unlink()
    app = open_page("transformer")
    assert "lacks its file model.safetensors" in texts(app)


def test_of_the_tree_of_beam_search(visits: Visits) -> None:
    """Beam search could be chosen, and no beam was shown."""
    app = visits("transformer", **{"t-text": "Go."})
    stands(app)
    assert finding(app, "The beam keeps greedy search's words until step 9", "Both searches find the same")
    assert "| beam | Où vous êtes-vous rencontrés, les mecs ? | -2.22 | -0.83 |" in one_line(app)
    nodes = {trace["name"]: trace for trace in drawn(app, "tree") if trace["mode"] == "markers+text"}
    assert {trace["marker"]["symbol"] for trace in nodes.values()} == {"circle", "square", "x"}
    assert "Vous<br>−7.47" in nodes["pruned"]["text"]
    assert "&lt;eos&gt;<br>−2.22" in nodes["ended"]["text"]
    assert (
        len(nodes["kept"]["text"]) + len(nodes["ended"]["text"]) == 9 * 4 + 2 + 1
    )  # ended ones leave the beam narrower
    own = visits("transformer", **{"t-text": "Go.", "t-tree": "own"})
    assert not finding(own, "The beam keeps greedy", "Both searches find the same")


def test_heads_that_moved_a_logit_are_named(visits: Visits) -> None:
    """The answer was the feed-forward net or the bias, among sixty unsorted bars."""
    app = visits("transformer", **{"t-text": "I'm home.", "t-section": "Through the layers"})
    stands(app)
    bars = drawn(app, "split")[0]
    assert list(bars["x"]) == sorted(bars["x"], reverse=True)
    assert all("attention" in name for name in bars["y"])
    assert "minus that of **J" in one_line(app)
    kind, place = bars["y"][0].split("<br>")
    assert f"[{place} ({kind})](#head=" in one_line(app)
    total = number(app, "Logit of **Je** minus that of **J'**:")
    assert total == pytest.approx(number(app, f"{total:.2f} =") + number(app, "from 48 heads,"), abs=0.011)
    assert finding(app, "final words are the most likely before layer 3", "None of the")
    assert number(app, "mean probability") < 20 < 80 < number(app, "layer 3 raises it to")


def test_of_heads_that_align(visits: Visits) -> None:
    """A head that looks at the source of the word just read was said to pair the words."""
    app = visits("transformer", **{"t-text": "Go.", "t-section": "How it was trained"})
    stands(app)
    measured = load("transformer-en-fr").card.training["alignments"]
    best = {}
    for reading in ("written", "read"):
        rates = np.array(measured[reading])
        layer, head = np.unravel_index(rates.argmin(), rates.shape)
        best[reading] = (int(layer) + 1, int(head) + 1, f"{rates.min():.1%}")
    writer, reader = (
        f"[layer {layer}, head {head}](#head=cross.{layer - 1}.{head - 1})" for layer, head, _ in best.values()
    )
    assert f"{writer} aligns the word being **written** best" in one_line(app)
    assert f"error rate {best['written'][2]}" in one_line(app)
    assert f"{reader} the word just **read**" in one_line(app)
    assert f"By position alone: {measured['diagonal']:.1%}" in one_line(app)
