"""Words with their probabilities, and translations with heads switched off, against the recorded pass."""

import html
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.transformer.decoding import percent, table_of_words
from pages.transformer.heads import words_changed
from tests.pages.reading import badges, drawn, finding, number, stands, texts
from tests.visits import Visits
from ui.compute.heads import HeadImportance, HeadImportances, head_importance
from ui.text.words import ENGLISH, load_words
from viz_core.maps.alignments import best_aligner
from viz_core.maps.contributions import contribution_norms
from viz_core.pretrained import Translation, Translator, load_translator
from viz_core.pretrained.bleu import Difference, corpus_bleu
from viz_core.pretrained.samples import held_out
from viz_core.pretrained.translation import Rival, WordProbability
from viz_core.trace import intervene, off, record

OpenPage = Callable[..., AppTest]
TEXT = "The black cat is sleeping on my bed."
_LAYER = re.compile(r"\*\*Layer \d:\*\* (\d+)% → (\d+)%")


@pytest.fixture(scope="module")
def translator() -> Translator:
    """The model that ships."""
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
    assert number(app, "With all heads** · log-probability") == pytest.approx(plain.log_probability, abs=0.01)
    assert f"log-probability −{-without.log_probability:.2f}" in texts(app)
    assert any("predicted-changed" in element.proto.body for element in app.get("html"))
    assert not finding(app, "The translation does not change", "Words in only one")

    assert badges(app)["the parts sum to the logit difference"]
    assert badges(app)["the last column is the model's output"]
    bars = drawn(app, "split")[0]
    assert all("attention" in name for name in bars["y"]), "heads only"
    assert [row[-1] for row in drawn(app, "lens")[0]["text"]][:-1] == list(plain.target_tokens[:-1])

    app.button(key="t-held-out-go").click().run()
    with intervene(edits):
        found = translator.translate_texts([sample.english for sample in held_out()[:30]])
    score = corpus_bleu(found, [sample.references for sample in held_out()[:30]])
    assert f"**{score:.1f}** without these" in texts(app)
    assert finding(app, "The difference is significant", "The difference is not significant")


def test_the_open_head_is_switched_by_a_button_and_all_are_on_again(open_page: OpenPage) -> None:
    app = open_page("transformer", **{"t-text": "Go.", "head": "decoder-self.0.4"})
    assert app.button(key="t-do-all-on").disabled
    app.button(key="t-do-head-off").click().run()
    assert app.multiselect(key="t-without").value == ["decoder-1.5"]
    assert "**Without head 5 of layer 1 (decoder)**" in texts(app)
    app.button(key="t-do-head-on").click().run()
    assert app.multiselect(key="t-without").value == []
    app.button(key="t-do-only-of-layer").click().run()
    assert app.multiselect(key="t-without").value == [f"decoder-1.{head}" for head in (1, 2, 3, 4, 6, 7, 8)]
    app.button(key="t-do-only-this").click().run()
    layers = [f"{kind}-{layer}" for kind in ("encoder", "decoder", "cross") for layer in (1, 2, 3)]
    of_layer = [f"decoder-1.{head}" for head in (1, 2, 3, 4, 6, 7, 8)]
    assert sorted(app.multiselect(key="t-without").value) == sorted([*of_layer, *layers[:3], *layers[4:]])
    app.button(key="t-do-all-on").click().run()
    assert app.multiselect(key="t-without").value == []
    stands(app)


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


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> HeadImportances:
    """Numbers that nobody measured: without head 1 of each layer the score falls, without head 2 it rises."""
    heads = []
    for site in translator_sites():
        for head in range(8):
            value = {0: -2.0, 1: 0.5}.get(head, -0.01 * head)
            worth = Difference(value, value - 0.3, value + 0.3)
            heads.append(HeadImportance(site, head, worth, Difference(-5.0, -6.0, -4.0), 1.0 - value / 10))
    found = HeadImportances("bleu", 51.0, 2197, tuple(heads))
    monkeypatch.setattr("ui.compute.heads.head_importance", lambda _: found)
    return found


def translator_sites() -> list[str]:
    kinds = ("encoder.{}.self", "decoder.{}.self", "decoder.{}.cross")
    return [kind.format(layer) for kind in kinds for layer in range(3)]


def test_the_grid_of_what_heads_are_worth(open_page: OpenPage, measured: HeadImportances) -> None:
    parameters = {"t-text": "Go.", "t-section": "What heads are worth", "t-without": ["cross-3.2"]}
    app = open_page("transformer", **parameters)
    stands(app)
    assert "18 of 72 heads change it significantly, 9 for the better" in texts(app)
    assert finding(app, "ranks heads similarly", "ranks heads differently")
    grid = drawn(app, "worth")[0]
    assert grid["text"][8][1] == "2 ×"
    assert grid["customdata"][0][0][0] == "head 1 of layer 1 (encoder)"
    assert list(grid["z"][0][:3]) == pytest.approx([-2, 0.5, -0.02])
    app.toggle(key="t-ordered").set_value(True)
    app.toggle(key="t-only-sure").set_value(True).run()
    grid = drawn(app, "worth")[0]
    assert grid["text"][8] == ["1", "8", "7", "6", "5", "4", "3", "2 ×"]
    assert [value == value for value in grid["z"][8]] == [True, *[False] * 6, True]


@pytest.mark.parametrize(
    ("head", "site", "number_of_head", "mark"),
    [("cross.2.5", "decoder.2.cross", 5, -1), ("decoder-self.1.0", "decoder.1.self", 0, 0)],
)
def test_weights_beside_what_they_carry(
    visits: Visits, translator: Translator, head: str, site: str, number_of_head: int, mark: int
) -> None:
    app = visits("transformer", **{"t-text": TEXT, "head": head, "t-section": "Weights and what they carry"})
    stands(app)
    result = translator.translate(TEXT)
    with record(values=True) as trace:
        translator.model(*translator.teacher_forced(result.source_ids, result.target_ids))
    block = translator.model.decoder.blocks[int(site[8])]
    W_o = (block.attention2 if site.endswith("cross") else block.attention1).W_o
    norms = contribution_norms(trace[site], W_o)[0, number_of_head]
    weights = trace[site].weights(head=number_of_head)[0]
    assert np.allclose(drawn(app, "contribution-norms")[0]["z"], norms, atol=1e-5)
    assert np.allclose(drawn(app, "contribution-weights")[0]["z"], weights, atol=1e-6)
    share = float((norms[:, mark] / norms.sum(dim=-1)).mean())
    assert f"{weights[:, mark].mean():.0%} of this head's weight and " in texts(app)
    assert "Averaged over rows" in texts(app)
    assert f"{share:.0%} of the added length" in texts(app)
    assert badges(app)["the vectors of all heads and keys sum to the output"]

    percentages = [(float(weight), float(norm)) for weight, norm in _LAYER.findall(texts(app))]
    parts = []
    for layer, attends in enumerate(translator.model.decoder.blocks):
        W_o = (attends.attention2 if site.endswith("cross") else attends.attention1).W_o
        call = trace[f"decoder.{layer}.{site[10:]}"]
        norms = contribution_norms(call, W_o)[0]
        share = (norms / norms.sum(dim=-1, keepdim=True))[..., mark].mean()
        parts.append((float(call.weights()[0, ..., mark].mean()), float(share)))
    np.testing.assert_allclose(np.array(percentages) / 100, parts, atol=0.006)
    (rests,) = (holds for claim, holds in badges(app).items() if "more weight than length" in claim)
    weights_of_mark, shares_of_mark = np.mean(parts, axis=0)
    assert rests == (weights_of_mark - shares_of_mark >= 0.01)


def test_vectors_of_one_length_leave_the_mark_no_place_to_rest(visits: Visits) -> None:
    parameters = {"t-text": TEXT, "t-break-contributions": "vectors of one length"}
    app = visits("transformer", **parameters)
    failed = [claim for claim, holds in badges(app).items() if not holds]
    assert ["more weight than length" in claim for claim in failed] == [True]
