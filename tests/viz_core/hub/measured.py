"""How exact the maps of tiny random models are: of a softmax against eager code in float64, of others by their rule."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from tests.viz_core.hub import tiny_talkers
from tests.viz_core.hub.families import (
    FAMILIES,
    FAMILIES_IN_MEMORY,
    HYBRIDS,
    eager_twin,
    hybrid,
    in_memory,
    inputs_of,
    maps_of,
    stack_of,
)
from tests.viz_core.hub.test_linear_attention import IDS, MASK, Spy
from viz_core.hub import instrument, load_hub
from viz_core.images.open_image import Video
from viz_core.pretrained.samples import drawn_picture
from viz_core.trace import record, site_of

VIDEO = ":video"
VIDEOS = tuple(f"{family}{VIDEO}" for family in ("internvl", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "smolvlm"))
# Layers of another family; experts, and a table of positions, that do not run in float64.
_LEFT_OUT = ("bert-fills", "roberta-fills", "sorter", "gpt-oss", "mixtral", "xglm")
ARCHITECTURES = (*sorted({*FAMILIES, *FAMILIES_IN_MEMORY} - {*_LEFT_OUT}), *HYBRIDS, *VIDEOS)


def measure(architecture: str) -> float:
    """Run a model and return the largest difference of a map."""
    if architecture in HYBRIDS:
        return _measure_hybrid(architecture)
    if architecture in VIDEOS:
        return _measure_video(architecture.removesuffix(VIDEO))
    model = in_memory(architecture)
    twin, inputs = in_memory(architecture, attn_implementation="eager").double(), inputs_of(model)
    wide = {name: each.double() if each.is_floating_point() else each for name, each in inputs.items()}
    instrument(model)
    with torch.no_grad(), record() as trace:
        model(**inputs)
        expected = maps_of(twin(**wide, output_attentions=True), stack_of(model))
        if architecture == "diffllama":
            expected = {site: difference(maps, twin, site) for site, maps in expected.items()}
    real = inputs["attention_mask"].bool() if "attention_mask" in inputs else None
    most = 0.0
    for call in trace:
        count = expected[call.site].shape[-1]  # a learned sink comes first, which theirs leave out
        own = call.weights()[..., -count:]
        off = (own - expected[call.site]).abs().amax(dim=(1, 3))
        most = max(most, float(off[real].max() if real is not None and real.shape == off.shape else off.max()))
    return most


def difference(softmaxes: Tensor, model: Any, site: str) -> Tensor:
    """Return softmax_1 - lambda softmax_2 of a layer of DiffLlama (Ye 2024, equation 1)."""
    own = model.model.layers[int(site.split(".")[1])].self_attn
    factor = (own.lambda_q1 @ own.lambda_k1).exp() - (own.lambda_q2 @ own.lambda_k2).exp() + own.lambda_init
    first, second = softmaxes.chunk(2, dim=1)
    return first - factor * second


def _measure_video(family: str) -> float:
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
    return max(residuals)


def _measure_hybrid(architecture: str) -> float:
    model = hybrid(architecture)
    instrument(model)
    with torch.no_grad(), Spy(model) as spy, record(values=True) as trace:
        model(IDS, attention_mask=MASK, use_cache=False)
    most = max(spy.residual(call) for call in trace if call.signed)
    return most


@torch.no_grad()
def zero_head(model: Any, site: str, head: int) -> None:
    """Set the columns of a head, of four, in its layer's output projection to zero."""
    projection = projection_of(model, site)
    columns = projection.weight.T if type(projection).__name__ == "Conv1D" else projection.weight
    width = columns.shape[1] // 4
    columns[:, head * width : (head + 1) * width] = 0


def projection_of(model: Any, site: str) -> Any:
    """The output projection of the layer at a site."""
    layer = next(module for module in model.modules() if site_of(module) == site)
    names = ("o_proj", "out_proj", "c_proj", "o", "dense")
    inner = [module for name, module in layer.named_modules() if name.rsplit(".", 1)[-1] in names]
    outer = [m for name, m in model.named_modules() if name.endswith(("attention.output.dense", "attention.o_proj"))]
    return inner[0] if inner else outer[int(site.split(".")[1])]
