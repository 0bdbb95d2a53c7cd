"""Architectures of transformers, built without weights: how many layers each has, and what is recorded of them.

`python -m tests.viz_core.hub.architectures` writes the part of docs/architectures.md on timm and torchvision.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from viz_core.trace.coverage import LayerCoverage, describe_uncovered

TABLE = Path(__file__).resolve().parents[3] / "docs" / "architectures.md"

_HIDDEN = "num_hidden_layers"
_CODER = "encoder_layers decoder_layers"
_HALVES = "text_config.num_hidden_layers vision_config.num_hidden_layers"
_VISION_AND_TEXT = "vision_config.num_hidden_layers text_config.num_hidden_layers"

# Where the config of each architecture says how many layers it has: numbers, or lists of them, to be added up.
ARCHITECTURES = {
    **dict.fromkeys(
        "bert bert-generation bros camembert convbert deberta deberta-v2 electra ernie eurobert "
        "layoutlm luke megatron-bert modernbert mpnet nystromformer roberta roberta-prelayernorm roformer splinter "
        "xlm-roberta yoso longformer".split(),
        _HIDDEN,
    ),
    **dict.fromkeys(
        "apertus arcee bitnet bloom biogpt codegen cohere cohere2 deepseek_v2 deepseek_v3 diffllama ernie4_5 exaone4 "
        "falcon gemma gemma2 gemma3_text glm glm4 gpt2 gpt_bigcode gpt_neox gpt_oss gptj granite helium llama minimax "
        "mistral mixtral olmo olmo2 opt persimmon phi phi3 qwen2 qwen3 qwen3_moe smollm3 stablelm starcoder2".split(),
        _HIDDEN,
    ),
    **dict.fromkeys(
        "kimi_linear qwen3_next qwen3_5_text lfm2 lfm3 bamba jamba nemotron_h recurrent_gemma falcon_h1 zamba zamba2 "
        "mamba mamba2 falcon_mamba".split(),
        _HIDDEN,
    ),
    **dict.fromkeys("vit deit beit dinov2 dinov2_with_registers dinov3_vit ijepa vit_mae yolos".split(), _HIDDEN),
    **dict.fromkeys("audio-spectrogram-transformer hubert wav2vec2 wavlm".split(), _HIDDEN),
    **dict.fromkeys("bart marian mbart pegasus blenderbot m2m_100 whisper bigbird_pegasus".split(), _CODER),
    **dict.fromkeys("t5 umt5".split(), "num_layers num_decoder_layers"),
    **dict.fromkeys("swin swinv2 donut-swin pvt_v2 glpn segformer hiera".split(), "depths"),
    **dict.fromkeys("clip siglip altclip chinese_clip".split(), _HALVES),
    **dict.fromkeys("llava paligemma qwen2_vl internvl idefics3 smolvlm".split(), _VISION_AND_TEXT),
    "albert": _HIDDEN,
    "cvt": "depth",
    "gpt_neo": "num_layers",
    "distilbert": "n_layers",
    "fnet": _HIDDEN,
    "lxmert": "l_layers x_layers r_layers",
    "perceiver": "num_self_attends_per_block",
    **dict.fromkeys("qwen2_5_vl qwen3_vl qwen3_5".split(), "vision_config.depth text_config.num_hidden_layers"),
}


def build(architecture: str) -> nn.Module:
    """Build a model as its config is by default, on the device that holds no numbers."""
    with torch.device("meta"):
        return transformers.AutoModel.from_config(transformers.CONFIG_MAPPING[architecture]())


def layers_by_config(architecture: str) -> int:
    """How many layers the config says there are."""
    config = transformers.CONFIG_MAPPING[architecture]()
    numbers = [_value(config, field) for field in ARCHITECTURES[architecture].split()]
    return sum(sum(each) if isinstance(each, list | tuple) else each for each in numbers)


def _value(config: Any, field: str) -> Any:
    for name in field.split("."):
        config = getattr(config, name)
    return config


def row(architecture: str, rows: Sequence[LayerCoverage]) -> str:
    """Return the line of the table: layers, those with a map, and why others have none."""
    layers = {(each.stack, each.layer) for each in rows if each.layer is not None}
    recorded = {(each.stack, each.layer) for each in rows if each.site and each.layer is not None}
    return f"| {architecture} | {len(layers)} | {len(recorded)} | {describe_uncovered(rows)} |"


TIMM_HEAD = """
## timm and torchvision

Narrow or shallow ones where they can be. The table agrees with a run under `record(torch_calls=model)`.

"""
COLUMNS = """| architecture | layers | recorded | not recorded |
| --- | --- | --- | --- |
"""

if __name__ == "__main__":
    from tests.viz_core.trace.test_peer_models import from_a_process

    peers = [each["row"] + "\n" for each in from_a_process("timm_architectures").values()]
    before = TABLE.read_text(encoding="utf-8").partition(TIMM_HEAD)[0]
    TABLE.write_text("".join([before, TIMM_HEAD, COLUMNS, *peers]), encoding="utf-8")
