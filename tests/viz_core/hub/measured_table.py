"""Tiny random models of many architectures, run: the rules of their layers, and how exact each map is.

`python -m tests.viz_core.hub.measured_table` writes the table of docs/architectures.md; a test measures it again.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
import transformers
from torch import Tensor

from tests.viz_core.hub import tiny_hybrids, tiny_talkers
from tests.viz_core.hub.architectures import TABLE
from tests.viz_core.hub.in_memory import STACKS, eager_twin, in_memory, inputs_of
from tests.viz_core.hub.test_linear_attention import IDS, MASK, Spy
from tests.viz_core.hub.test_parity import maps_of
from viz_core.hub import instrument, load_hub
from viz_core.images.drawn import drawn_picture
from viz_core.images.video import Video
from viz_core.trace import record

_SMALL = {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_LATENT = {
    **_SMALL,
    "intermediate_size": 48,
    "num_key_value_heads": 4,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "first_k_dense_replace": 2,
}
_DIFFERENTIAL = {**_SMALL, "num_key_value_heads": 4, "intermediate_size": 48}
CONFIGURED = {"deepseek_v2": _LATENT, "deepseek_v3": _LATENT, "diffllama": _DIFFERENTIAL}
SOFTMAX = "bart bert bloom deit dinov2 gemma gemma2 gpt2 llama marian mistral qwen3 registers roberta t5 vit".split()
VIDEO = ":video"
VIDEOS = tuple(f"{family}{VIDEO}" for family in ("internvl", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "smolvlm"))
ARCHITECTURES = (*SOFTMAX, *CONFIGURED, *tiny_hybrids.FAMILIES, *VIDEOS)

HEAD = """
## Measured

Tiny random models with a padded batch, run in float32 and compared: maps of a softmax with those that the model's own
eager code returns in float64, other maps with what its own rule gives for one-hot values, relative to the largest
weight where that is above 1. A model with `:video` reads a text with three frames; measured are the layers of its
decoder. Written by the tests' own run (`python -m tests.viz_core.hub.measured_table`).

| architecture | layers | rules of the layers, in order | largest difference |
| --- | --- | --- | --- |
"""


class Measured(NamedTuple):
    """A model that was run: the rule of each layer in call order, and the largest difference of a map."""

    rules: tuple[str, ...]
    residual: float

    def row(self, architecture: str, residual: str) -> str:
        """Return the line of the table."""
        runs: list[list[Any]] = []
        for rule in self.rules:
            if runs and runs[-1][0] == rule:
                runs[-1][1] += 1
            else:
                runs.append([rule, 1])
        kinds = ", ".join(f"{count} × {rule}" for rule, count in runs)
        return f"| {architecture} | {len(self.rules)} | {kinds} | {residual} |"


def measure(architecture: str) -> Measured:
    """Run a model and compare its maps."""
    if architecture in tiny_hybrids.FAMILIES:
        return _measure_hybrid(architecture)
    if architecture in VIDEOS:
        return _measure_video(architecture.removesuffix(VIDEO))
    model = _configured(architecture) if architecture in CONFIGURED else in_memory(architecture)
    stack = STACKS.get(model.config.model_type, "decoder" if architecture in (*CONFIGURED, *_DECODERS) else "encoder")
    twin, inputs = eager_twin(model).double(), inputs_of(model)
    wide = {name: each.double() if each.is_floating_point() else each for name, each in inputs.items()}
    instrument(model)
    with torch.no_grad(), record() as trace:
        model(**inputs)
        expected = maps_of(twin(**wide, output_attentions=True), stack)
        if architecture == "diffllama":
            expected = {site: _difference(maps, twin, site) for site, maps in expected.items()}
    real = inputs["attention_mask"].bool() if "attention_mask" in inputs else None
    most = 0.0
    for call in trace:
        off = (call.weights() - expected[call.site]).abs().amax(dim=(1, 3))
        most = max(most, float(off[real].max() if real is not None and real.shape == off.shape else off.max()))
    return Measured(tuple(call.rule for call in trace), most)


_DECODERS = ("bloom", "gemma", "mistral", "qwen3")


def _difference(softmaxes: Tensor, model: Any, site: str) -> Tensor:
    """Return softmax_1 - lambda softmax_2 of a layer of DiffLlama (Ye 2024, equation 1)."""
    own = model.model.layers[int(site.split(".")[1])].self_attn
    factor = (own.lambda_q1 @ own.lambda_k1).exp() - (own.lambda_q2 @ own.lambda_k2).exp() + own.lambda_init
    first, second = softmaxes.chunk(2, dim=1)
    return first - factor * second


def _configured(architecture: str) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(4)
        config = transformers.CONFIG_MAPPING[architecture](**CONFIGURED[architecture], attn_implementation="eager")
        return transformers.AutoModelForCausalLM.from_config(config).eval()


def _measure_video(family: str) -> Measured:
    frames = [drawn_picture(name).resize((20, 30)) for name in ("cat", "frog", "ship")]
    with TemporaryDirectory() as folder:
        tiny_talkers.build(family, Path(folder))
        model = load_hub(Path(folder), device="cpu")
    run = model.run("<image> The cat", video=Video.of(frames, fps=2), max_new_tokens=0)
    wide = {
        name: each.double() if isinstance(each, Tensor) and each.is_floating_point() else each
        for name, each in run.inputs.items()
    }
    with torch.no_grad():
        expected = maps_of(eager_twin(model.network).double()(**wide, output_attentions=True), "decoder")
    calls = [call for call in run.trace if call.stack == "decoder"]
    residuals = [float((call.weights() - expected[call.site]).abs().max()) for call in calls]
    return Measured(tuple(call.rule for call in calls), max(residuals))


def _measure_hybrid(architecture: str) -> Measured:
    model = tiny_hybrids.hybrid(architecture)
    instrument(model)
    with torch.no_grad(), Spy(model) as spy, record(values=True) as trace:
        model(IDS, attention_mask=MASK, use_cache=False)
    most = max(spy.residual(call) for call in trace if call.signed)
    return Measured(tuple(call.rule for call in trace), most)


def written_rows() -> dict[str, str]:
    """Return the lines of the table as written, by architecture."""
    part = TABLE.read_text(encoding="utf-8").partition(HEAD)[2]
    return {found[1]: found[0] for found in re.finditer(r"^\| (\S+) \|.*$", part, re.MULTILINE)}


if __name__ == "__main__":
    found = {name: measure(name) for name in ARCHITECTURES}
    rows = [each.row(name, f"{each.residual:.1e}") + "\n" for name, each in found.items()]
    before = TABLE.read_text(encoding="utf-8").partition("\n## Measured")[0]
    TABLE.write_text(before + HEAD + "".join(rows), encoding="utf-8")
