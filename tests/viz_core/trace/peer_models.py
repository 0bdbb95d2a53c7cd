"""timm and torchvision, seen through `record(torch_calls=model)`: what a program of its own finds, as JSON.

`python -m tests.viz_core.trace.peer_models`, with .venv/peers on the path. They do not lie where the app would meet
them, so this runs in a process of its own.
"""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from viz_core.trace import record


def name_operators() -> None:
    """Let torchvision be imported beside any build of torch.

    The one of PyPI is built for CUDA. Beside a torch for CPUs its operators cannot be loaded, and its import then fails
    because two of them have no name. None has to do with attention.
    """
    spec = find_spec("torchvision")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    try:
        torch.ops.load_library(str(next(Path(spec.submodule_search_locations[0]).glob("_C.*"))))
    except OSError:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float threshold) -> Tensor")


name_operators()

import timm  # noqa: E402
from timm.models import beit, eva, vision_transformer  # noqa: E402
from torchvision.models import VisionTransformer, swin_transformer  # noqa: E402
from torchvision.models.maxvit import MaxVit  # noqa: E402


def unfused(model: nn.Module) -> nn.Module:
    """As `timm.layers.set_fused_attn(False)` makes models: by matrix products and a softmax."""
    for layer in model.modules():
        if hasattr(layer, "fused_attn"):
            layer.fused_attn = False
    return model


__all__ = ["swin_transformer", "timm"]

SIZES = {"img_size": 16, "patch_size": 4, "embed_dim": 32, "depth": 2, "num_heads": 4}
MODELS: dict[str, Callable[[], nn.Module]] = {
    "timm ViT": lambda: vision_transformer.VisionTransformer(**SIZES, qk_norm=True),
    "timm ViT, not fused": lambda: unfused(vision_transformer.VisionTransformer(**SIZES)),
    "timm BEiT, relative positions": lambda: beit.Beit(**SIZES, use_rel_pos_bias=True, init_values=0.1),
    "timm EVA, rotary positions": lambda: eva.Eva(**SIZES, use_rot_pos_emb=True, ref_feat_shape=(4, 4)),
    "torchvision ViT": lambda: VisionTransformer(16, 4, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=48),
}


def own_weights(model: nn.Module, X: Tensor) -> list[Tensor]:
    """What each layer gives when it is asked for its weights: torch's layers by name, timm's where it does not fuse."""
    found: list[Tensor] = []
    given: list[tuple[nn.Module, tuple[Tensor, ...]]] = []
    for layer in model.modules():
        if isinstance(layer, nn.MultiheadAttention):
            layer.register_forward_pre_hook(lambda layer, inputs: given.append((layer, inputs)))
        elif hasattr(layer, "fused_attn"):
            unfused(layer)
            layer.attn_drop.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0]))
    model(X)
    return found or [layer(*inputs, average_attn_weights=False)[1] for layer, inputs in given.copy()]


def outcome(model: nn.Module, X: Tensor) -> list[Tensor]:
    """The output, and while training all gradients."""
    if not model.training:
        with torch.no_grad():
            return [model(X)]
    model.zero_grad()
    output = model(X)
    output.square().sum().backward()
    return [output, *(weights.grad for weights in model.parameters() if weights.grad is not None)]


def seen(make: Callable[[], nn.Module], training: bool) -> dict[str, object]:
    """Sites, the largest difference to the model's own weights, and whether all else stays bit for bit."""
    torch.manual_seed(1)
    model, X = make().train(training), torch.randn(2, 3, 16, 16)
    for weights in model.parameters():
        if weights.dim() > 1:  # even attention would prove nothing
            nn.init.normal_(weights, std=0.15)
    plain = outcome(model, X)
    with record(torch_calls=model) as trace:
        recorded = outcome(model, X)
    pairs = list(zip(trace, own_weights(model, X), strict=True))
    return {
        "sites": trace.sites,
        "spread": min(float(own.detach().std()) for _, own in pairs),
        "difference": max(float((call.weights() - own.detach()).abs().max()) for call, own in pairs),
        "same": all(torch.equal(a, b) for a, b in zip(plain, recorded, strict=True)),
    }


def partitions_seen() -> list[str]:
    """Sites of torchvision's MaxViT, whose softmax is over five axes: windows of each picture."""
    model = MaxVit((32, 32), 16, 2, [16, 32], [1, 2], head_dim=8, stochastic_depth_prob=0.0).eval()
    with torch.no_grad(), record(torch_calls=model) as trace:
        model(torch.randn(2, 3, 32, 32))
    assert all(call.source.shape[1:] in ((2, 4, 4), (4, 4, 4)) for call in trace)
    return list(trace.sites)


if __name__ == "__main__":
    modes = {"training": True, "evaluation": False}
    found = {f"{name}, {mode}": seen(MODELS[name], modes[mode]) for name in MODELS for mode in modes}
    print(json.dumps({**found, "torchvision MaxViT": partitions_seen()}))
