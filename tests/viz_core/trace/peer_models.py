"""timm and torchvision, seen through `record(torch_calls=model)`: what a program of its own finds, as JSON.

`python -m tests.viz_core.trace.peer_models`, with .venv/peers on the path. They do not lie where the app would meet
them, so this runs in a process of its own.
"""

import json
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from viz_core.hub import coverage
from viz_core.trace import record
from viz_core.trace.coverage import describe_uncovered


def name_operators() -> None:
    """Let torchvision of PyPI, which is built for CUDA, be imported beside a torch for CPUs: name two operators."""
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
    for layer in model.modules():
        if hasattr(layer, "fused_attn"):
            layer.fused_attn = False
    return model


SIZES = {"img_size": 16, "patch_size": 4, "embed_dim": 32, "depth": 2, "num_heads": 4}
MODELS: dict[str, Callable[[], nn.Module]] = {
    "timm ViT": lambda: vision_transformer.VisionTransformer(**SIZES, qk_norm=True),
    "timm ViT, not fused": lambda: unfused(vision_transformer.VisionTransformer(**SIZES)),
    "timm BEiT, relative positions": lambda: beit.Beit(**SIZES, use_rel_pos_bias=True, init_values=0.1),
    "timm EVA, rotary positions": lambda: eva.Eva(**SIZES, use_rot_pos_emb=True, ref_feat_shape=(4, 4)),
    "torchvision ViT": lambda: VisionTransformer(16, 4, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=48),
}


def own_weights(model: nn.Module, X: Tensor) -> list[Tensor]:
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


def seen(make: Callable[[], nn.Module], training: bool) -> dict[str, object]:
    torch.manual_seed(1)
    model, X = make().train(training), torch.randn(2, 3, 16, 16)
    for weights in model.parameters():
        if weights.dim() > 1:  # even attention would prove nothing
            nn.init.normal_(weights, std=0.15)
    plain = model(X)
    with record(torch_calls=model) as trace:
        recorded = model(X)
    pairs = list(zip(trace, own_weights(model, X), strict=True))
    return {
        "sites": trace.sites,
        "spread": min(float(own.detach().std()) for _, own in pairs),
        "difference": max(float((call.weights() - own.detach()).abs().max()) for call, own in pairs),
        "same": torch.equal(plain, recorded),
    }


def partitions_seen() -> list[str]:
    model = MaxVit((32, 32), 16, 2, [16, 32], [1, 2], head_dim=8, stochastic_depth_prob=0.0).eval()
    with torch.no_grad(), record(torch_calls=model) as trace:
        model(torch.randn(2, 3, 32, 32))
    assert all(call.source.shape[1:] in ((2, 4, 4), (4, 4, 4)) for call in trace)
    return list(trace.sites)


_NARROW: dict[str, Any] = {"depth": 3, "embed_dim": 32, "num_heads": 4}
_WIDER: dict[str, Any] = {**_NARROW, "embed_dim": 64}
_WINDOWS = {"embed_dim": 24, "depths": (2, 2, 2, 2), "num_heads": (1, 2, 4, 8)}
# Arguments beside the names of models.
TIMM: dict[str, dict[str, Any]] = {
    **dict.fromkeys("vit_tiny_patch16_224 deit_tiny_patch16_224 beit_base_patch16_224 cait_xxs24_224".split(), _NARROW),
    **dict.fromkeys(("vit_relpos_small_patch16_224", "naflexvit_base_patch16_gap"), _NARROW),
    **dict.fromkeys(("vit_small_patch16_rope_224", "eva02_tiny_patch14_224"), _WIDER),
    **dict.fromkeys(("swin_tiny_patch4_window7_224", "swinv2_tiny_window8_256", "swinv2_cr_tiny_224"), _WINDOWS),
    "samvit_base_patch16": {**_NARROW, "img_size": 64, "global_attn_indexes": (2,)},
    "davit_tiny": {"depths": (1, 1, 2, 1), "embed_dims": (24, 48, 96, 192), "num_heads": (1, 2, 4, 8)},
    "hiera_tiny_224": {"embed_dim": 24, "stages": (1, 1, 2, 1)},
}
# The classes that mix tokens of each: their instances are counted.
MIXERS = dict(
    each.split(":")
    for each in """
vit_tiny_patch16_224:Attention vit_small_patch16_rope_224:EvaAttention,AttentionRope
vit_relpos_small_patch16_224:RelPosAttention naflexvit_base_patch16_gap:Attention samvit_base_patch16:Attention
deit_tiny_patch16_224:Attention beit_base_patch16_224:Attention eva02_tiny_patch14_224:EvaAttention,AttentionRope
cait_xxs24_224:TalkingHeadAttn,ClassAttn coat_lite_tiny:FactorAttnConvRelPosEnc coat_tiny:FactorAttnConvRelPosEnc
convit_tiny:GPSA,MHSA crossvit_tiny_240:Attention,CrossAttention csatv2:SpatialAttention,Attention
davit_tiny:WindowAttention,ChannelAttention edgenext_xx_small:CrossCovarianceAttn efficientformer_l1:Attention
efficientformerv2_s0:Attention2d,Attention2dDownsample efficientvit_m0:LocalWindowAttention efficientvit_b0:LiteMLA
fastvit_sa12:RepMixer,Attention gcvit_xxtiny:WindowAttention,WindowAttentionGlobal hiera_tiny_224:MaskUnitAttention
levit_128s:Attention,AttentionDownsample coatnet_pico_rw_224:Attention2d mobilevit_xxs:Attention
mobilevitv2_050:LinearSelfAttention nest_tiny:Attention pit_ti_224:Attention pvt_v2_b0:Attention
swin_tiny_patch4_window7_224:WindowAttention swinv2_tiny_window8_256:WindowAttention
swinv2_cr_tiny_224:WindowMultiHeadAttention swiftformer_xs:EfficientAdditiveAttention tnt_s_patch16_224:Attention
visformer_tiny:Attention xcit_nano_12_p16_224:XCA,ClassAttn halonet26t:HaloAttn shvit_s1:SHSA iformer_t:SHMA
mixer_s32_224:MixerBlock torchvision_Swin:ShiftedWindowAttention
""".split()
)


def architecture(name: str) -> dict[str, Any]:
    if name == "torchvision_Swin":
        block = partial(swin_transformer.SwinTransformerBlock, norm_layer=partial(nn.LayerNorm, eps=1e-5))
        model = swin_transformer.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], block=block).eval()
    else:
        model = timm.create_model(name, **TIMM.get(name, {})).eval()
    size = getattr(model, "default_cfg", {}).get("input_size", (3, 64, 64))
    size = (3, 64, 64) if name.startswith("samvit") else size
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        with record(torch_calls=model) as trace:
            model(torch.randn(1, *size))
    rows = coverage(model)
    layers, mapped = (
        {(each.stack, each.layer) for each in rows if each.layer is not None and (each.site or not recorded)}
        for recorded in (False, True)
    )
    return {
        "expected": sum(type(part).__name__ in MIXERS[name].split(",") for part in model.modules()),
        "rows": sum(each.code not in ("none", "outside") for each in rows),
        "covered": sorted({each.site for each in rows if each.site}),
        "recorded": sorted({site.partition("@")[0] for site in trace.sites}),
        "reasons": sorted({each.reason for each in rows if not each.site and each.code not in ("none", "outside")}),
        "warned": " ".join(str(each.message) for each in caught if "not recorded" in str(each.message)),
        "row": f"| {name.replace('_Swin', ' Swin')} | {len(layers)} | {len(mapped)} | {describe_uncovered(rows)} |",
    }


if __name__ == "__main__":
    modes = {"training": True, "evaluation": False}
    found: dict[str, Any] = {f"{name}, {mode}": seen(MODELS[name], modes[mode]) for name in MODELS for mode in modes}
    torch.manual_seed(0)
    found["architectures"] = {name: architecture(name) for name in MIXERS}
    print(json.dumps({**found, "torchvision MaxViT": partitions_seen()}))
