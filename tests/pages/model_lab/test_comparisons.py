"""Two models on one text, and two sentences that differ in a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, components, drawn, one_line, stands, texts
from ui.text.model_card import named_model
from viz_core.hub import HubError, HubModel, load_hub
from viz_core.lab.runs import compare_heads
from viz_core.lab.sentence_pair import TwoSentences
from viz_core.lab.two_sentences import circuit, compare, predictions, sweep
from viz_core.view.components import unframe

OpenPage = Callable[..., AppTest]
pytestmark = pytest.mark.usefixtures("offline_lab")
WRITER = {"ml-model": "writer-en", "ml-open-two-sentences": "true"}
GIRLS = TwoSentences("The girls in the house", "The girl in the house")
CAT = TwoSentences("The cat is black.", "The dog is black.")


def test_the_head_that_was_changed_is_named_first(open_page: OpenPage, folders: Path) -> None:
    app = open_page("model-lab", **{"ml-model": "bert", "ml-text": "The cat sat.", "ml-other": "tuned"})
    page_text = texts(app)
    assert "**bert** and **tuned** read the same text" in page_text
    assert "3 of 8 heads are unchanged" in page_text
    first, second = (load_hub(folders / name, device="cpu").run("The cat sat.") for name in ("bert", "tuned"))
    ranked = compare_heads(first, second)[0].heads
    assert ranked[0][1:] == (0, 2)
    rows = next(m.value for m in app.markdown if m.value.startswith("1. [")).splitlines()
    assert rows[0] == f"1. [layer 1, head 3](#head=encoder-self.0.2) · **{ranked[0].change:.3f}**"
    assert len(rows) == 8
    base = unframe(components(app, "attention_view")[0].bytes)[0]["base"]
    assert (base["inputs"], base["beside"], len(base["groups"])) == (["bert", "tuned"], [], 2)
    assert not app.warning


@pytest.mark.parametrize(
    ("model", "fits", "fits_not"),
    [
        ("bert", {"tuned", "roberta", "gpt2", "reader-en", "openai-community/gpt2"}, {"t5", "openai/whisper-tiny"}),
        ("gpt2", {"bert", "writer-en", "Qwen/Qwen3-0.6B"}, {"vit-cifar10", "google-t5/t5-small"}),
        ("t5", {"transformer-en-fr", "Helsinki-NLP/opus-mt-en-de"}, {"bert", "gpt2", "facebook/dinov2-small"}),
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


def _texts(sentences: TwoSentences) -> tuple[str, str]:
    return sentences.clean, sentences.corrupted


def _first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output
