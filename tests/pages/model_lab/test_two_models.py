"""Two models on one text through AppTest: who changed most is named and opens; what cannot be compared says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest

from serving.requests.model_comparison import compare_heads
from tests.pages.reading import components, texts
from tests.viz_core.hub.families import build_all
from ui.text.model_card import named_model
from viz_core.hub import load_hub
from viz_core.view.framing import unframe

OpenPage = Callable[..., AppTest]
pytestmark = pytest.mark.usefixtures("offline_lab")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, the same with the queries of one head turned round, and others of the same kind and of other kinds."""
    root = build_all(("bert", "gpt2", "roberta", "t5"), tmp_path_factory.mktemp("models"))
    (root / "tuned").mkdir()
    for file in (root / "bert").iterdir():
        (root / "tuned" / file.name).write_bytes(file.read_bytes())
    weights = load_file(root / "bert" / "model.safetensors")
    name = next(name for name in weights if name.endswith("layer.0.attention.self.query.weight"))
    weights[name][16:24] *= -1  # the third head of four
    save_file(weights, root / "tuned" / "model.safetensors", {"format": "pt"})
    return root


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
    ("other", "says", "inputs"),
    [
        ({"ml-other": "roberta"}, "split or continue the text differently", 2),
        ({"ml-other": "gpt2"}, "one causally", 2),
        ({"ml-other": "hub", "ml-other-name": "transformer-en-fr"}, "The first model is an encoder", 1),
    ],
)
def test_what_cannot_be_compared_says_why(open_page: OpenPage, other: dict[str, str], says: str, inputs: int) -> None:
    app = open_page("model-lab", **{"ml-model": "bert"}, **other)
    assert says in texts(app)
    base = unframe(components(app, "attention_view")[0].bytes)[0]["base"]
    assert len(base["groups"]) == inputs
    assert base["beside"] == (["encoder-self"] if inputs == 2 else [])
    assert not any(m.value.startswith("1. [") for m in app.markdown)


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
