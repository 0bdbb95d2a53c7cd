"""The Transformer chapter: translations, refusals and claims, and what it says of its pictures."""

import html
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.transformer.decoding import percent, table_of_words
from pages.transformer.heads import words_changed
from tests.pages.reading import badges, drawn, finding, one_line, stands, texts
from tests.visits import Visits
from ui.compute.heads import head_importance
from ui.text.words import ENGLISH, load_words
from viz_core.maps.alignments import best_aligner
from viz_core.maps.contributions import contribution_norms
from viz_core.pretrained import Translation, Translator, load, load_translator
from viz_core.pretrained.bleu import book_bleu, corpus_bleu, sentence_bleu
from viz_core.pretrained.samples import held_out
from viz_core.pretrained.translation import Rival, WordProbability
from viz_core.trace import intervene, off, record

OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="module")
def translator() -> Translator:
    """The model that ships."""
    return load_translator("transformer-en-fr")


def test_something_is_there_before_anything_is_typed(visits: Visits, translator: Translator) -> None:
    app = visits("transformer")
    result = translator.translate("The black cat is sleeping on my bed.")
    assert f"## {result.text}" in texts(app)
    assert f"−{-result.log_probability:.2f}" in texts(app)


def test_the_books_sentences_come_with_its_bleu_and_sacrebleu(open_page: OpenPage, translator: Translator) -> None:
    app = open_page("transformer")
    app.text_input(key="t-text").set_value("I'm home.").run()
    result = translator.translate("I'm home.")
    reference = "Je suis chez moi."
    assert f"**{book_bleu(result.text.lower().split(), reference.lower().split()):.3f}**" in texts(app)
    assert f"**{sentence_bleu(result.text, [reference]):.1f}**" in texts(app)


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
        assert app.radio(key="t-guess-off").options
        assert app.get("expander")


def test_of_the_tree_of_beam_search(visits: Visits) -> None:
    """Beam search could be chosen, and no beam was shown."""
    app = visits("transformer", **{"t-text": "Go."})
    stands(app)
    assert finding(app, "The beam keeps greedy search's words until step 9", "Both searches find the same")
    assert "| beam | Où vous êtes-vous rencontrés, les mecs ? | -2.22 | -0.83 |" in one_line(app)
    own = visits("transformer", **{"t-text": "Go.", "t-tree": "own"})
    assert not finding(own, "The beam keeps greedy", "Both searches find the same")


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


TEXT = "The black cat is sleeping on my bed."


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
    assert "fewer than 5 of 110,893 training sentences: **i** (never)" in texts(app)
    assert "**Zorglub** (never)" in texts(app)


def test_a_table_has_a_row_for_each_word(translator: Translator) -> None:
    result = translator.translate("I lost.")
    table = table_of_words(result.words)
    assert list(table["word"]) == [word.text for word in result.words]
    assert list(table["probability"]) == [word.probability for word in result.words]
    assert list(table["p(rival 5)"]) == [word.rivals[4].probability for word in result.words]
    short = table_of_words([replace(result.words[0], rivals=(Rival("a", 0.25),)), WordProbability("b", 0.5, (), ())])
    assert short.to_csv(index=False).splitlines()[2] == "b,0.5,False,,"


def test_percents() -> None:
    assert [percent(p) for p in (1.0, 0.5, 0.0996, 0.0994)] == ["100%", "50%", "10%", "9.9%"]
    assert [percent(p) for p in (0.0005, 0.0004, 0)] == ["0.1%", "< 0.1%", "< 0.1%"]


def with_words(made: Translation, words: str) -> Translation:
    return replace(made, words=tuple(WordProbability(word, 0.5, (), ()) for word in words.split()))


def test_what_only_one_says_is_changed(translator: Translator) -> None:
    made = translator.translate("Go.", max_new_tokens=2)
    one, other = with_words(made, "le chat dort ."), with_words(made, "le chien dort ici .")
    assert words_changed(one, other) == ({1}, {1, 3})
    assert words_changed(one, one) == (frozenset(), frozenset())
    assert words_changed(with_words(made, ""), other) == (frozenset(), frozenset(range(5)))


def test_a_link_with_heads_off_shows_both_translations_and_their_scores(
    open_page: OpenPage, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("pages.transformer.heads", "serving.requests.shipped"):
        monkeypatch.setattr(f"{module}.held_out", lambda: held_out()[:30])
    names = [f"cross-{layer}.{head}" for layer in (2, 3) for head in range(1, 9)]
    app = open_page("transformer", **{"t-text": TEXT, "t-without": names, "t-section": "Through the layers"})
    stands(app)
    edits = {"decoder.1.cross": off(*range(8)), "decoder.2.cross": off(*range(8))}
    with intervene(edits):
        without = translator.translate(TEXT)
    plain = translator.translate(TEXT)
    assert without.text != plain.text
    assert f"log-probability −{-without.log_probability:.2f}" in texts(app)
    assert not finding(app, "The translation does not change", "Words in only one")

    assert [row[-1] for row in drawn(app, "lens")[0]["text"]][:-1] == list(plain.target_tokens[:-1])

    app.button(key="t-held-out-go").click().run()
    with intervene(edits):
        found = translator.translate_texts([sample.english for sample in held_out()[:30]])
    score = corpus_bleu(found, [sample.references for sample in held_out()[:30]])
    assert f"**{score:.1f}** without these" in texts(app)
    assert finding(app, "The difference is significant", "The difference is not significant")


def test_what_the_exercise_says_of_the_aligning_head_is_so(translator: Translator) -> None:
    _, layer, head = best_aligner(translator.alignment_errors, "written")
    assert (layer, head) == (2, 2), "layer 3, head 3"
    measured = head_importance("transformer-en-fr")
    assert measured is not None
    worth = next(each for each in measured.heads if (each.site, each.head) == ("decoder.2.cross", 2))
    text = load_words("transformer", ENGLISH)("exercise.aligner").replace("−", "-")
    assert worth.without is not None
    assert worth.alone is not None
    for value in worth.without:
        assert f"{value:+.2f}" in text
    assert f"{worth.alone.value:.2f}" in text
    assert f"{measured.examples} sentences" in text
    assert abs(worth.without.value) < 1
    assert worth.without.low < 0 < worth.without.high


def test_weights_beside_what_they_carry(visits: Visits, translator: Translator) -> None:
    app = visits("transformer", **{"t-text": TEXT, "head": "cross.2.5", "t-section": "Weights and what they carry"})
    stands(app)
    result = translator.translate(TEXT)
    with record(values=True) as trace:
        translator.model(*translator.teacher_forced(result.source_ids, result.target_ids))
    call, W_o = trace["decoder.2.cross"], translator.model.decoder.blocks[2].attention2.W_o
    norms, weights = contribution_norms(call, W_o)[0, 5], call.weights(head=5)[0]
    assert np.allclose(drawn(app, "contribution-norms")[0]["z"], norms, atol=1e-5)
    assert np.allclose(drawn(app, "contribution-weights")[0]["z"], weights, atol=1e-6)
    share = float((norms[:, -1] / norms.sum(dim=-1)).mean())
    assert f"{weights[:, -1].mean():.0%} of this head's weight and " in texts(app)
    assert f"{share:.0%} of the added length" in texts(app)
    assert badges(app)["the vectors of all heads and keys sum to the output"]
