"""Tiny random models of every kind in a folder that the lab's host allows, built once."""

from pathlib import Path

import pytest
import transformers
from safetensors.torch import load_file, save_file

from tests.viz_core.hub.families import SIZES, build_all, save_tokenizer

_FAMILIES = (
    *("bert", "gpt2", "gpt-oss", "t5", "roberta", "vit", "dinov2", "registers"),
    *("llava", "smolvlm", "paligemma", "clip", "whisper"),
)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder; "tuned" is bert with the queries of one head reversed, "hybrid" has layers without attention."""
    root = build_all(_FAMILIES, tmp_path_factory.mktemp("models"))
    (root / "tuned").mkdir()
    for file in (root / "bert").iterdir():
        (root / "tuned" / file.name).write_bytes(file.read_bytes())
    weights = load_file(root / "bert" / "model.safetensors")
    name = next(name for name in weights if name.endswith("layer.0.attention.self.query.weight"))
    weights[name][16:24] *= -1  # the third head of four
    save_file(weights, root / "tuned" / "model.safetensors", {"format": "pt"})
    sizes = {**SIZES, "num_hidden_layers": 4, "num_key_value_heads": 2, "vocab_size": 400}
    config = transformers.Lfm2Config(**sizes, layer_types=["conv", "conv", "full_attention", "conv"])
    transformers.Lfm2ForCausalLM(config).save_pretrained(root / "hybrid")
    save_tokenizer("bytes", root / "hybrid", ends=False)
    return root
