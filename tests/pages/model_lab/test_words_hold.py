"""Sentences of the lab that name a head, decided again on the figure beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import transformers
from streamlit.testing.v1 import AppTest

from tests.pages.reading import number, one_line, stands
from tests.viz_core.hub.families import SIZES, build_all, save_tokenizer
from viz_core.positional import alibi_slopes

OpenPage = Callable[..., AppTest]
pytestmark = pytest.mark.usefixtures("offline_lab")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = build_all(("bert", "bloom"), tmp_path_factory.mktemp("models"))
    sizes = {**SIZES, "num_hidden_layers": 4, "num_key_value_heads": 2, "vocab_size": 400}
    config = transformers.Lfm2Config(**sizes, layer_types=["conv", "conv", "full_attention", "conv"])
    transformers.Lfm2ForCausalLM(config).save_pretrained(root / "hybrid")
    save_tokenizer("bytes", root / "hybrid", ends=False)
    return root


def test_of_layers_without_a_map(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": "hybrid", "ml-new": "1", "ml-section": "The model"})
    stands(app)
    sentence = (
        "Not recorded: layers 1–2, 4 of model.layers. Lfm2ShortConv weighs earlier tokens separately in each channel"
    )
    assert sentence in one_line(app)


@pytest.mark.parametrize("head", [1, 4])
def test_of_slopes(open_page: OpenPage, head: int) -> None:
    parameters = {"ml-model": "bloom", "ml-new": "1", "ml-section": "How it knows positions", "ml-head": str(head)}
    app = open_page("model-lab", **parameters)
    stands(app)
    assert number(app, f"Head {head} loses ") == pytest.approx(float(alibi_slopes(4)[head - 1]), rel=1e-2)
