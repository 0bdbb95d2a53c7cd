"""Texts in the lab: heads off, the lens, query times key, sinks, and sentences that name a head."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, drawn, number, one_line, stands, texts
from ui.widgets.figure_style import escape_labels
from viz_core.circuits import score_attribution
from viz_core.hub import load_hub
from viz_core.lab.circuits import through_the_layers
from viz_core.lab.heads_off import without_heads
from viz_core.lab.sinks import hidden_tokens, sinks_of, windowed
from viz_core.maps.score_products import score_products
from viz_core.trace import intervene, off, record

OpenPage = Callable[..., AppTest]
pytestmark = pytest.mark.usefixtures("offline_lab")
PARAMETERS = {"ml-start": "The cat", "ml-new": "3", "ml-section": "Query times key", "head": "decoder-self.1.2"}
TEXT = "The cat sat on the mat and looked at the old dog near the river."


def test_a_decoder_without_heads_and_through_its_layers(open_page: OpenPage, folders: Path) -> None:
    parameters = {"ml-model": "gpt2", "ml-start": "The cat", "ml-new": "5", "ml-section": "Through the layers"}
    app = open_page(
        "model-lab", **parameters, **{"ml-without": ["decoder-1", "decoder-2.3"], "head": "decoder-self.1.1"}
    )
    stands(app)
    model = load_hub(folders / "gpt2", device="cpu")
    run = model.run("The cat", max_new_tokens=5)
    heads = (*(("decoder.0.self", head) for head in range(4)), ("decoder.1.self", 2))
    found = without_heads(model, run, heads, run.num_prompt_tokens - 1)
    assert found.perplexity is not None
    assert number(app, f"Perplexity of {found.counted} tokens: **") == pytest.approx(found.perplexity[0], abs=0.06)
    assert number(app, "with all heads, **") == pytest.approx(found.perplexity[1], abs=0.06)
    after, before = drawn(app, "off-words")
    np.testing.assert_allclose(before["x"], [change.before for change in found.changes], atol=1e-6)
    np.testing.assert_allclose(after["x"], [change.after for change in found.changes], atol=1e-6)
    with intervene({"decoder.0.self": off(0, 1, 2, 3), "decoder.1.self": off(2)}):
        other = model.run("The cat", max_new_tokens=5)
    assert other.text != run.text
    assert "Generated without them" in texts(app)
    assert badges(app)["the last layer equals the model's output"]
    seen = through_the_layers(model, run)
    assert [row[-1] for row in drawn(app, "lens")[0]["text"]] == escape_labels(list(seen.tokens[-1]))
    app.button(key="ml-do-head-off").click().run()
    assert app.multiselect(key="ml-without").value == ["decoder-1", "decoder-2.2", "decoder-2.3"]


def test_an_encoder_turns_and_fills_in(open_page: OpenPage, folders: Path) -> None:
    parameters = {"ml-model": "bert-fills", "ml-text": "The cat [MASK] here.", "ml-without": ["encoder-1.2"]}
    app = open_page("model-lab", **parameters, **{"ml-section": "Through the layers"})
    stands(app)
    model = load_hub(folders / "bert-fills", device="cpu")
    run = model.run("The cat [MASK] here.")
    found = without_heads(model, run, (("encoder.0.self", 1),))
    np.testing.assert_allclose(drawn(app, "off-distance")[0]["y"], found.distances, atol=1e-6)
    assert badges(app)["the last layer equals the model's output"]
    last_word = [token.label for token in run.tokens if token.text.isalpha() and not token.special][-1]
    assert f"After **{last_word}**" in texts(app), "not after the mark that ends the text"


def test_classes_and_layers_that_share_their_weights(open_page: OpenPage) -> None:
    stands(app := open_page("model-lab", **{"ml-model": "sorter", "ml-without": ["encoder-2"]}))
    assert sum(drawn(app, "off-classes")[0]["x"]) == pytest.approx(1, abs=1e-5)
    app = open_page("model-lab", **{"ml-model": "albert", "head": "encoder-self.1.0"})
    assert app.button(key="ml-do-head-off").label == "Switch head 1 of layer 2 off"  # of this layer alone


def test_a_pair_by_link_and_another_by_choice(open_page: OpenPage, folders: Path) -> None:
    """A model whose positions rotate, with grouped queries and a learned sink before all keys."""
    run = load_hub(folders / "gpt-oss", device="cpu").run("The cat", max_new_tokens=3)
    last = len(run.tokens)
    pair = {"sp-query": f"{last} {run.tokens[-1].label}", "sp-key": f"3 {run.tokens[1].label}"}
    app = open_page("model-lab", **{"ml-model": "gpt-oss", **PARAMETERS, **pair})
    stands(app)
    found = score_products(run.trace["decoder.1.self"], 2, last - 1, 2)
    bars, total, key, query = drawn(app, "score-products")
    np.testing.assert_allclose(bars["y"], found.products, atol=1e-6)
    np.testing.assert_allclose(query["z"][0], found.query, atol=1e-6)
    np.testing.assert_allclose(key["z"][0], found.key, atol=1e-6)
    assert total["y"][-1] == pytest.approx(found.score, abs=1e-6)
    assert f"The score is **{found.score:+.3f}**" in one_line(app)
    assert badges(app)["the bars add up to the score that enters the softmax"]
    assert "after the rotation" in texts(app)
    app.selectbox(key="sp-key").set_value("1 sink").run()
    bars, total, _, _ = drawn(app, "score-products")
    sink = score_products(run.trace["decoder.1.self"], 2, last - 1, 0)
    assert np.asarray(bars["y"]).tolist() == pytest.approx([*[0.0] * 8, sink.bias])
    assert number(app, "gives the weight **") == pytest.approx(sink.weight, abs=6e-4)
    app.selectbox(key="sp-query").set_value(f"1 {run.tokens[0].label}")
    app.selectbox(key="sp-key").set_value(f"4 {run.tokens[2].label}").run()
    assert "A mask hides this key" in texts(app)
    stands(app)


def test_why_this_score_adds_up_by_parts_of_the_stream(open_page: OpenPage) -> None:
    text = "The cat sat on the"
    link = {"ml-model": "writer-en", "ml-start": text, "ml-new": "0", "ml-open-products": "true"}
    app = open_page("model-lab", **link, **{"head": "decoder-self.3.3", "sp-why": "true"})
    stands(app)
    model = load_hub("writer-en", device="cpu")
    with record(values=True, states=True) as trace:
        model.network(**model.run(text, max_new_tokens=0).inputs)
    query, key = (int(app.selectbox(key=f"sp-{side}").value.split()[0]) - 1 for side in ("query", "key"))
    found = score_attribution(model.network, trace, "decoder.3.self", 3, query, key)
    (bars,) = drawn(app, "score-parts")
    assert bars["x"][-1] == pytest.approx(found.score, abs=1e-4)
    assert sum(bars["x"][:-1]) == pytest.approx(found.score, abs=1e-4)
    assert bars["x"][0] == pytest.approx(max(found.terms.sum(dim=0).tolist(), key=abs), abs=1e-4)
    assert badges(app)["the parts add up to the score"]
    app.button_group(key="sp-side").set_value(["query"]).run()
    (bars,) = drawn(app, "score-parts")
    assert bars["x"][0] == pytest.approx(max(found.terms.sum(dim=1).tolist(), key=abs), abs=1e-4)


def test_a_score_that_cannot_be_taken_apart_is_refused_in_a_sentence(open_page: OpenPage) -> None:
    """The first key is a learned sink, which no part of the stream has written."""
    pair = {"sp-query": "3 x", "sp-key": "1 sink", "sp-why": "true"}
    app = open_page("model-lab", **{"ml-model": "gpt-oss", **PARAMETERS, **pair})
    app.selectbox(key="sp-key").set_value("1 sink").run()
    assert "cannot be divided among earlier parts: the key is a learned sink" in texts(app)


def test_whole_maps_have_no_products(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": "bloom", **PARAMETERS})
    assert "no score of a query and a key" in texts(app)


def test_of_a_decoder_with_a_window(open_page: OpenPage, folders: Path) -> None:
    """First with too short a text, then with the longer one that it offers."""
    app = open_page("model-lab", **{"ml-model": "gpt-oss", "ml-start": "The", "ml-section": "Sinks", "ml-new": "2"})
    assert "The text has 1 tokens; at least" in texts(app)
    app.button(key="ml-longer").click().run()
    app.slider(key="ml-window").set_value(20).run()
    stands(app)
    model = load_hub(folders / "gpt-oss", device="cpu")
    run = model.run(app.text_area(key="ml-start").value, max_new_tokens=2)
    found, seen = sinks_of(model, run, "decoder-self"), windowed(model, run, 20)
    assert found.learned is not None
    np.testing.assert_allclose(drawn(app, "sinks-shares")[0]["z"], found.shares, atol=1e-6)
    np.testing.assert_allclose(drawn(app, "sinks-learned")[0]["z"], found.learned, atol=1e-6)
    np.testing.assert_allclose(drawn(app, "sinks-lengths")[0]["z"], found.lengths, atol=1e-5)
    sinking = round(8 * found.sinking)
    assert f"**{sinking}** of 8 heads exceed 0.3" in one_line(app)
    heights = [seen.full, seen.sliding, seen.with_first]
    np.testing.assert_allclose(drawn(app, "window")[0]["y"], heights, rtol=1e-5)
    assert number(app, f"**{seen.sliding:,.2f}** with the last 20; **") == pytest.approx(seen.with_first, abs=0.006)
    assert "not comparable with this model" in one_line(app), "another model's numbers are quoted, not compared"
    assert f"here, now `{seen.sliding:.0f}" not in one_line(app)


def test_of_an_encoder_whose_first_token_is_hidden(open_page: OpenPage, folders: Path) -> None:
    app = open_page("model-lab", **{"ml-model": "bert", "ml-text": TEXT, "ml-section": "Sinks"})
    stands(app)
    model = load_hub(folders / "bert", device="cpu")
    first, end, *others = hidden_tokens(model, model.run(TEXT))
    mean = np.mean([hidden.distance for hidden in others])
    heights = [hidden.distance for hidden in (first, end, *others)]
    np.testing.assert_allclose(drawn(app, "hidden")[0]["y"], heights, atol=1e-6)
    assert number(app, "is hidden from all others: **") == pytest.approx(first.distance, abs=6e-4)
    assert number(app, "** for the first,") == pytest.approx(mean, abs=6e-4)


def test_of_layers_without_a_map(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": "hybrid", "ml-new": "1", "ml-section": "The model"})
    stands(app)
    sentence = (
        "Not recorded: layers 1–2, 4 of model.layers. Lfm2ShortConv weighs earlier tokens separately in each channel"
    )
    assert sentence in one_line(app)
