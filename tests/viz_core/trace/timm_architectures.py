"""Architectures of timm and torchvision with random weights: what `coverage` says of each, and what a run records.

`python -m tests.viz_core.trace.timm_architectures`, with .venv/peers on the path, prints it as JSON.
"""

import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from tests.viz_core.hub.architectures import row
from tests.viz_core.trace.peer_models import swin_transformer, timm
from viz_core.hub import coverage
from viz_core.trace import record

NARROW = {"embed_dim": 32, "num_heads": 4}
SHORT = {"depths": (1, 1, 2, 1)}
WINDOWS = {"embed_dim": 24, "depths": (2, 2, 2, 2), "num_heads": (1, 2, 4, 8)}

# Arguments beside the model's name, and the classes that mix its tokens: their instances are counted.
TIMM: dict[str, tuple[dict[str, Any], str]] = {
    "vit_tiny_patch16_224": ({"depth": 3, **NARROW}, "Attention"),
    "vit_small_patch16_rope_224": ({"depth": 3, "embed_dim": 64, "num_heads": 4}, "EvaAttention AttentionRope"),
    "vit_relpos_small_patch16_224": ({"depth": 3, **NARROW}, "RelPosAttention"),
    "naflexvit_base_patch16_gap": ({"depth": 3, **NARROW}, "Attention"),
    "samvit_base_patch16": ({"depth": 3, "img_size": 64, "global_attn_indexes": (2,), **NARROW}, "Attention"),
    "deit_tiny_patch16_224": ({"depth": 3, **NARROW}, "Attention"),
    "beit_base_patch16_224": ({"depth": 3, **NARROW}, "Attention"),
    "eva02_tiny_patch14_224": ({"depth": 3, "embed_dim": 64, "num_heads": 4}, "EvaAttention AttentionRope"),
    "cait_xxs24_224": ({"depth": 3, **NARROW}, "TalkingHeadAttn ClassAttn"),
    "coat_lite_tiny": ({}, "FactorAttnConvRelPosEnc"),
    "coat_tiny": ({}, "FactorAttnConvRelPosEnc"),
    "convit_tiny": ({}, "GPSA MHSA"),
    "crossvit_tiny_240": ({}, "Attention CrossAttention"),
    "csatv2": ({}, "SpatialAttention Attention"),
    "davit_tiny": (
        {**SHORT, "embed_dims": (24, 48, 96, 192), "num_heads": (1, 2, 4, 8)},
        "WindowAttention ChannelAttention",
    ),
    "edgenext_xx_small": ({}, "CrossCovarianceAttn"),
    "efficientformer_l1": ({}, "Attention"),
    "efficientformerv2_s0": ({}, "Attention2d Attention2dDownsample"),
    "efficientvit_m0": ({}, "LocalWindowAttention"),
    "efficientvit_b0": ({}, "LiteMLA"),
    "fastvit_sa12": ({}, "RepMixer Attention"),
    "gcvit_xxtiny": ({}, "WindowAttention WindowAttentionGlobal"),
    "hiera_tiny_224": ({"embed_dim": 24, "stages": (1, 1, 2, 1)}, "MaskUnitAttention"),
    "levit_128s": ({}, "Attention AttentionDownsample"),
    "coatnet_pico_rw_224": ({}, "Attention2d"),
    "mobilevit_xxs": ({}, "Attention"),
    "mobilevitv2_050": ({}, "LinearSelfAttention"),
    "nest_tiny": ({}, "Attention"),
    "pit_ti_224": ({}, "Attention"),
    "pvt_v2_b0": ({}, "Attention"),
    "swin_tiny_patch4_window7_224": (WINDOWS, "WindowAttention"),
    "swinv2_tiny_window8_256": (WINDOWS, "WindowAttention"),
    "swinv2_cr_tiny_224": (WINDOWS, "WindowMultiHeadAttention"),
    "swiftformer_xs": ({}, "EfficientAdditiveAttention"),
    "tnt_s_patch16_224": ({}, "Attention"),
    "visformer_tiny": ({}, "Attention"),
    "xcit_nano_12_p16_224": ({}, "XCA ClassAttn"),
    "halonet26t": ({}, "HaloAttn"),
    "shvit_s1": ({}, "SHSA"),
    "iformer_t": ({}, "SHMA"),
    "mixer_s32_224": ({}, "MixerBlock"),
}


def torchvision_swin() -> nn.Module:
    block = partial(swin_transformer.SwinTransformerBlock, norm_layer=partial(nn.LayerNorm, eps=1e-5))
    return swin_transformer.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], block=block)


MODELS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    **{name: (partial(timm.create_model, name, **options), kinds) for name, (options, kinds) in TIMM.items()},
    "torchvision Swin": (torchvision_swin, "ShiftedWindowAttention"),
}


def found(name: str) -> dict[str, Any]:
    """The parts that mix tokens, those of the coverage, sites of the coverage and of a run, reasons and warnings."""
    make, kinds = MODELS[name]
    model = make().eval()
    size = getattr(model, "default_cfg", {}).get("input_size", (3, 64, 64))
    size = (3, 64, 64) if name.startswith("samvit") else size
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        with record(torch_calls=model) as trace:
            model(torch.randn(1, *size))
    rows = coverage(model)
    return {
        "expected": sum(type(part).__name__ in kinds.split() for part in model.modules()),
        "rows": sum(each.code not in ("none", "outside") for each in rows),
        "covered": sorted({each.site for each in rows if each.site}),
        "recorded": sorted({site.partition("@")[0] for site in trace.sites}),
        "reasons": sorted({each.reason for each in rows if not each.site and each.code not in ("none", "outside")}),
        "warned": " ".join(str(each.message) for each in caught if "not recorded" in str(each.message)),
        "row": row(name, rows),
    }


if __name__ == "__main__":
    torch.manual_seed(0)
    print(json.dumps({name: found(name) for name in MODELS}))
