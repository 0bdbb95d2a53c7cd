"""Texts in the lab: heads off, lens, sinks; two models on one text, and two sentences."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, drawn, number, one_line, stands, texts
from ui.text.model_card import named_model
from ui.widgets.figure_style import escape_labels
from viz_core.circuits import score_attribution
from viz_core.hub import HubError, HubModel, load_hub
from viz_core.lab.circuits import through_the_layers
from viz_core.lab.heads_off import without_heads
from viz_core.lab.sentence_pair import TwoSentences
from viz_core.lab.sinks import sinks_of, windowed
from viz_core.lab.two_sentences import circuit, compare, predictions, sweep
from viz_core.maps.score_products import score_products
from viz_core.trace import record

OpenPage = Callable[..., AppTest]
pytestmark = pytest.mark.usefixtures("offline_lab")
PARAMETERS = {"ml-start": "The cat", "ml-new": "3", "ml-section": "Query times key", "head": "decoder-self.1.2"}


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
    after, before = drawn(app, "off-words")
    np.testing.assert_allclose(before["x"], [change.before for change in found.changes], atol=1e-6)
    np.testing.assert_allclose(after["x"], [change.after for change in found.changes], atol=1e-6)
    seen = through_the_layers(model, run)
    assert [row[-1] for row in drawn(app, "lens")[0]["text"]] == escape_labels(list(seen.tokens[-1]))
    app.button(key="ml-do-head-off").click().run()
    assert app.multiselect(key="ml-without").value == ["decoder-1", "decoder-2.2", "decoder-2.3"]


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
    np.testing.assert_allclose([query["z"][0], key["z"][0]], [found.query, found.key], atol=1e-6)
    assert total["y"][-1] == pytest.approx(found.score, abs=1e-6)
    assert f"The score is **{found.score:+.3f}**" in one_line(app)
    assert badges(app)["the bars add up to the score that enters the softmax"]
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
    for name in ("shares", "learned", "lengths"):
        np.testing.assert_allclose(drawn(app, f"sinks-{name}")[0]["z"], getattr(found, name), atol=1e-5)
    sinking = round(8 * found.sinking)
    assert f"**{sinking}** of 8 heads exceed 0.3" in one_line(app)
    heights = [seen.full, seen.sliding, seen.with_first]
    np.testing.assert_allclose(drawn(app, "window")[0]["y"], heights, rtol=1e-5)
    assert "not comparable with this model" in one_line(app), "another model's numbers are quoted, not compared"


def test_of_layers_without_a_map(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": "hybrid", "ml-new": "1", "ml-section": "The model"})
    stands(app)
    note = "Not recorded: layers 1–2, 4 of model.layers. Lfm2ShortConv weighs earlier tokens separately in each channel"
    assert note in one_line(app)


WRITER = {"ml-model": "writer-en", "ml-open-two-sentences": "true"}
GIRLS = TwoSentences("The girls in the house", "The girl in the house")
CAT = TwoSentences("The cat is black.", "The dog is black.")


@pytest.mark.parametrize(
    ("model", "fits", "fits_not"),
    [
        ("bert", {"tuned", "roberta", "gpt2", "reader-en", "openai-community/gpt2"}, {"t5", "openai/whisper-tiny"}),
        ("vit-cifar10", {"vit-fashion-mnist", "google/vit-base-patch16-224"}, {"bert", "transformer-en-fr"}),
    ],
)
def test_the_list_offers_only_models_that_can_be_compared(
    open_page: OpenPage, model: str, fits: set[str], fits_not: set[str]
) -> None:
    app = open_page("model-lab", **{"ml-model": model})
    offered = set(app.selectbox(key="ml-other").options)
    assert set(map(named_model, fits)) <= offered
    assert not offered & set(map(named_model, fits_not | {model}))


@pytest.fixture(scope="module")
def writer() -> HubModel:
    return load_hub("writer-en")


def test_a_cell_of_a_sweep_is_a_run_with_plain_hooks(writer: HubModel) -> None:
    network, states = writer.network, dict[str, Any]()
    ids = [writer.run(text, max_new_tokens=0).inputs["input_ids"] for text in (GIRLS.clean, GIRLS.corrupted)]
    found = compare(writer, GIRLS)
    assert found.answers == ("are", "is")
    answers = [writer.run(f"The girl {word}", max_new_tokens=0).tokens[-1].id for word in found.answers]

    @torch.no_grad()
    def difference(tokens: Any) -> float:
        logits = network(tokens).logits[0, -1]
        return float(logits[answers[0]] - logits[answers[1]])

    assert [difference(each) for each in ids] == pytest.approx([found.clean, found.corrupted], abs=1e-4)
    layer = network.model.layers[1]
    handle = layer.register_forward_hook(lambda _m, _i, output: states.update(state=_first(output).clone()))
    difference(ids[0])
    handle.remove()

    def put(_module: Any, _inputs: Any, output: Any) -> Any:
        _first(output)[:, 2] = states["state"][:, 2]

    handle = layer.register_forward_hook(put)
    patched = difference(ids[1])
    handle.remove()
    assert float(sweep(writer, GIRLS, "decoder", "residual")[1, 2]) == pytest.approx(patched, abs=1e-4)
    assert predictions(writer, GIRLS, "decoder", "residual", 1, 2).difference == pytest.approx(patched, abs=1e-4)


def test_each_head_of_cross_attention_is_patched_in_a_translator() -> None:
    model = load_hub("transformer-en-fr")
    found = compare(model, CAT)
    assert found.answers == ("chat", "chien")
    assert found.sweeps["decoder"][-1] == "cross-heads"
    grid = sweep(model, CAT, "decoder", "cross-heads")
    assert grid.shape == (3, 8)
    for layer, head in ((0, 1), (2, 3)):
        patched = predictions(model, CAT, "decoder", "cross-heads", layer, head)
        assert patched.difference == pytest.approx(float(grid[layer, head]), abs=1e-4)
    assert found.recovered(float(sweep(model, CAT, "encoder", "residual")[2, 1])) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (("The girls run", "The big girl run"), r"have 4 and 5\. They differ in “girls” and “big” and “girl”"),
        (("The girls", "The girls"), "the same tokens"),
        (("a b " * 40, "a c " * 40), "at most 48"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_reason(
    writer: HubModel, sentences: tuple[str, ...], message: str
) -> None:
    with pytest.raises(HubError, match=message):
        compare(writer, TwoSentences(*sentences))


def test_a_link_keeps_sentences_and_cell_and_shows_what_the_patch_changes(
    open_page: OpenPage, writer: HubModel
) -> None:
    boys = TwoSentences("The boys near the tree", "The boy near the tree", "are", "is")
    link = {"ts-clean": boys.clean, "ts-corrupted": boys.corrupted, "ts-answer": "are", "ts-other": "is"}
    app = open_page("model-lab", **WRITER, **link, **{"ts-what": "heads", "ts-layer": "4", "ts-cell": "4"})
    stands(app)
    found, grid = compare(writer, boys), sweep(writer, boys, "decoder", "heads").numpy()
    np.testing.assert_allclose(drawn(app, "sweep")[0]["z"], found.recovered(grid), atol=1e-4)
    share = found.recovered(float(grid[3, 3]))
    assert f"to **{grid[3, 3]:+.2f}**: **{share:.0%}** of the change" in one_line(app)
    assert badges(app)["the patched run equals its cell in the map"]
    app.text_input(key="ts-corrupted").set_value("The old boy near the tree").run()
    assert "They differ in" in texts(app)


def test_the_circuit_keeps_more_than_random_ones(open_page: OpenPage, writer: HubModel) -> None:
    app = open_page("model-lab", **WRITER, **{"ts-circuit": "true", "ts-count": "4"})
    stands(app)
    found, part = compare(writer, GIRLS), circuit(writer, GIRLS, 4)
    assert part.heads[0] == ("decoder.0.self", 0)
    alone, random = found.recovered(part.alone), found.recovered(part.random)
    assert alone > random.mean() + 3 * random.std()
    assert f"keeps **{alone:.0%}** of the change" in one_line(app)
    widest = max(part.edges, key=lambda edge: abs(found.recovered(edge.value)))
    assert f"carries **{found.recovered(widest.value):.0%}**" in one_line(app)


def _first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output
