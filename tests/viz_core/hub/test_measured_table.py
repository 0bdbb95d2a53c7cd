"""The table of measured architectures against the models themselves."""

from __future__ import annotations

import pytest
import transformers

from tests.viz_core.hub.measured_table import ARCHITECTURES
from viz_core.hub import coverage

# The families of models with layers beyond a plain softmax: those of the table, or the reason for layers without a map.
NAMED = {
    "qwen3_next": None,
    "qwen3_5_text": None,
    "minimax": None,
    "mamba2": None,
    "bamba": None,
    "nemotron_h": None,
    "falcon_h1": None,
    "diffllama": None,
    "deepseek_v2": None,
    "deepseek_v3": None,
    "recurrent_gemma": "channels",
    "lfm2": "channels",
    "rwkv": "channels",
}


@pytest.mark.parametrize("family", NAMED)
def test_each_family_has_exact_maps_or_a_reason(family: str) -> None:
    reason = NAMED[family]
    if reason is None:
        assert family in ARCHITECTURES
        return
    sizes = {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    options = {
        "recurrent_gemma": {**sizes, "intermediate_size": 48, "lru_width": 32, "attention_window_size": 8},
        "lfm2": {
            **sizes,
            "num_key_value_heads": 2,
            "intermediate_size": 48,
            "layer_types": ["conv", "conv", "full_attention"],
        },
        "rwkv": {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32},
    }[family]
    model = transformers.AutoModelForCausalLM.from_config(transformers.CONFIG_MAPPING[family](**options))
    found = list(dict.fromkeys((each.layer, bool(each.site), each.code) for each in coverage(model)))
    softmax = [2] if family != "rwkv" else []
    expected = [
        (layer, layer in softmax, "" if layer in softmax else reason) for layer in range(options["num_hidden_layers"])
    ]
    assert found == expected
