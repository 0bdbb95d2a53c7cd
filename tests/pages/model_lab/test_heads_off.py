"""Heads switched off in the lab, and the lens: what the page says is what the library says, for every kind of model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from serving.requests.lens import through_the_layers
from tests.pages.reading import badges, drawn, number, stands, texts
from tests.viz_core.hub.families import build_all
from ui.widgets.figure_style import escape_labels
from viz_core.hub import load_hub
from viz_core.lab.heads_off import without_heads
from viz_core.trace import intervene, off

OpenPage = Callable[..., AppTest]
pytestmark = pytest.mark.usefixtures("offline_lab")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("bert-fills", "gpt2", "sorter", "albert"), tmp_path_factory.mktemp("models"))


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
    app = open_page("model-lab", **{"ml-model": "albert", "head": "encoder-self.2.0"})
    assert "layers share their weights" in texts(app)


def test_what_the_exercise_says_of_one_layer_is_so(folders: Path) -> None:
    """Without a head of the first layer, maps of that layer are the same bit for bit, those of the second are not."""
    model = load_hub(folders / "gpt2", device="cpu")
    run = model.run("The cat sat.", max_new_tokens=0)
    with intervene({"decoder.0.self": off(1)}):
        other = model.run("The cat sat.", max_new_tokens=0)
    for head in (0, 2, 3):
        assert torch.equal(run.trace["decoder.0.self"].weights(head), other.trace["decoder.0.self"].weights(head))
    assert not torch.allclose(run.trace["decoder.1.self"].weights(0), other.trace["decoder.1.self"].weights(0))
