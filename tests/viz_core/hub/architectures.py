"""Architectures of transformers, built without weights: how many layers each has, and what is recorded of them.

`python -m tests.viz_core.hub.architectures` writes the part of docs/architectures.md on timm and torchvision.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from viz_core.trace.coverage import LayerCoverage, describe_uncovered

TABLE = Path(__file__).resolve().parents[3] / "docs" / "architectures.md"

# Where the config of each architecture says how many layers it has: numbers, or lists of them, to be added up.
ARCHITECTURES = {
    **dict.fromkeys(
        "albert arcee bert-generation bitnet bros cohere2 deberta deepseek_v3 dinov2 ernie exaone4 falcon_mamba gemma2 "
        "glm4 gpt_bigcode gpt_oss helium jamba lfm2 mamba2 megatron-bert mixtral nemotron_h olmo2 phi qwen2 qwen3 "
        "qwen3_moe recurrent_gemma roformer smollm3 stablelm vit wavlm yolos zamba2".split(),
        "num_hidden_layers",
    ),
    **dict.fromkeys(("bart", "pegasus"), "encoder_layers decoder_layers"),
    **dict.fromkeys(("clip", "idefics3", "llava"), "text_config.num_hidden_layers vision_config.num_hidden_layers"),
    "distilbert": "n_layers",
    "lxmert": "l_layers x_layers r_layers",
    "swinv2": "depths",
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
