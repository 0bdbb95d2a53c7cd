"""Two sentences that differ in a word: what the page shows is what the library measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from serving.requests.sentence_pair import TwoSentences
from serving.requests.two_sentences import circuit, compare, predictions, sweep
from tests.pages.reading import badges, drawn, one_line, stands, texts
from viz_core.hub import HubError, HubModel, load_hub

OpenPage = Callable[..., AppTest]
WRITER = {"ml-model": "writer-en", "ml-open-two-sentences": "true"}
GIRLS = TwoSentences("The girls in the house", "The girl in the house")
CAT = TwoSentences("The cat is black.", "The dog is black.")


@pytest.fixture(scope="module")
def writer() -> HubModel:
    return load_hub("writer-en")


def test_a_cell_of_a_sweep_is_a_run_with_plain_hooks(writer: HubModel) -> None:
    network, states = writer.network, dict[str, Any]()
    ids = [writer.run(text, max_new_tokens=0).inputs["input_ids"] for text in _texts(GIRLS)]
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
        (("The girls", ""), "nothing to read"),
        (("The girls", "The girl", "are", "are"), "two different words"),
        (("The girls", "The girl", "qwertyuiop"), "tokens of this model"),
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
    app.slider(key="ts-count").set_value(1).run()
    stands(app)


def test_addresses_that_mean_nothing_show_a_default_and_say_so(open_page: OpenPage) -> None:
    link = {
        "ts-what": "<b>",
        "ts-layer": "99",
        "ts-cell": "-1",
        "ts-stack": "x",
        "ts-circuit": "yes",
        "ts-count": "1e9",
    }
    app = open_page("model-lab", **WRITER, **link)
    stands(app)
    assert drawn(app, "sweep")[0]["z"].shape == (4, 6)


def _texts(sentences: TwoSentences) -> tuple[str, str]:
    return sentences.clean, sentences.corrupted


def _first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output
