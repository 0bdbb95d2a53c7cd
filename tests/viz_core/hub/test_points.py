"""Deformable attention of a detector: points and weights of the model's own code, as a map over places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from viz_core.hub import coverage, instrument, restore, verify
from viz_core.trace import intervene, load_trace, off, record, save_trace
from viz_core.trace.points import SampledPoints
from viz_core.view import view

PICTURES = torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(3))
SIZES = ((8, 12), (4, 6), (2, 3))
SITES = ("decoder.0.cross", "decoder.1.cross")


def detector(name: str) -> Any:
    """A detector whose layers read three feature maps, at points that random weights spread over the picture."""
    sizes = [16, 24, 32]
    backbone = {"embedding_size": 8, "hidden_sizes": [8, *sizes], "depths": [1] * 4, "layer_type": "basic"}
    backbone["out_features"] = ["stage2", "stage3", "stage4"]
    options = dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim"), 32)
    options |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4)
    options |= {"encoder_layers": 1, "decoder_layers": 2, "num_queries": 7}
    if name == "RTDetr":
        options |= {"backbone_config": transformers.RTDetrResNetConfig(**backbone), "encoder_hidden_dim": 32}
        options |= {
            "encoder_in_channels": sizes,
            "decoder_in_channels": [32] * 3,
            "num_denoising": 0,
            "eval_size": None,
        }
    else:
        options |= {"backbone_config": transformers.ResNetConfig(**backbone), "num_feature_levels": 3}
        options |= {"backbone": None, "use_timm_backbone": False, "use_pretrained_backbone": False}
    with torch.random.fork_rng():
        torch.manual_seed(5)
        config = getattr(transformers, f"{name}Config")(**options)
        model = getattr(transformers, f"{name}Model")(config).eval().requires_grad_(False)
        for path, weights in model.named_parameters():
            if "sampling_offsets" in path or "attention_weights" in path:
                torch.nn.init.normal_(weights, std=0.5)
    return model


def written_by_heads(model: Any) -> dict[str, Tensor]:
    """Inputs of output projections in the next pass, (batch, heads, queries, v)."""
    found: dict[str, Tensor] = {}
    for site, layer in zip(SITES, model.decoder.layers, strict=True):

        def keep(_layer: Any, inputs: Any, site: str = site) -> None:
            found[site] = inputs[0].unflatten(-1, (4, -1)).transpose(1, 2)

        layer.encoder_attn.output_proj.register_forward_pre_hook(keep)
    return found


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-6), (torch.bfloat16, 2e-2)])
def test_weights_times_values_are_what_heads_write(dtype: torch.dtype, most: float, tmp_path: Path) -> None:
    model, pictures = detector("RTDetr").to(dtype), PICTURES.to(dtype)
    plain, written = model(pixel_values=pictures).last_hidden_state, written_by_heads(model)
    assert all(row.site for row in coverage(model))
    assert set(SITES) < set(instrument(model))
    with record(values=True) as trace:
        assert torch.equal(model(pixel_values=pictures).last_hidden_state, plain)
    for site in SITES:
        call = trace[site]
        source, weights, output = call.source, call.weights(), written[site].float()
        assert isinstance(source, SampledPoints)
        assert source.sizes == SIZES
        assert weights.shape == (2, 4, 7, 8 * 12 + 4 * 6 + 2 * 3)
        assert float((weights @ call.values.float() - output).abs().max()) < most * float(output.abs().max())
        assert float(weights.min()) >= 0
        sums = weights.sum(dim=-1)
        assert float(sums.max()) < 1 + most
        assert float(sums.min()) < 0.9, "some points lie outside of the maps"
        assert torch.equal(call.weights(head=2, queries=slice(1, 6, 2)), weights[:, 2, 1:6:2])
        assert torch.equal(call.text(1).weights(), weights[1:])
    save_trace(trace, tmp_path / "points.safetensors")
    assert torch.equal(load_trace(tmp_path / "points.safetensors")[SITES[1]].weights(), weights)
    assert view(trace[SITES[0]]).groups[0].calls[0].num_keys == weights.shape[3]
    with pytest.raises(ValueError, match="whose heads alone can be edited"), intervene({SITES[0]: off(1)}):
        model(pixel_values=pictures)
    restore(model)
    with pytest.warns(UserWarning, match="nothing was recorded"), record() as nothing:
        model(pixel_values=pictures)
    assert not len(nothing)


def test_a_point_by_hand_and_padding() -> None:
    """At x = 0.25 of column 0 and 1, y = 0.5 above row 0 of a map of 2 x 4; and in the middle of a map of one place."""
    points = torch.tensor([[[[[[0.1875, 0.0]], [[0.5, 0.5]]]]]])
    source = SampledPoints(points, torch.tensor([[[[[0.8], [0.2]]]]]), ((2, 4), (1, 1)))
    expected = torch.zeros(9)
    expected[:2] = 0.8 * 0.5 * torch.tensor([0.75, 0.25])
    expected[8] = 0.2
    every = slice(0, 1)
    torch.testing.assert_close(source.rows(every, every).flatten(), expected)
    padded = SampledPoints(points, source.point_weights, source.sizes, key_tokens=torch.arange(9)[None] != 1)
    torch.testing.assert_close(padded.rows(every, every).flatten(), expected * (torch.arange(9) != 1))


def test_padding_of_a_picture_reads_nothing() -> None:
    """The second picture of Deformable DETR is 64 wide: of maps of 12, 6 and 3 columns 8, 4 and 2 are no padding."""
    model, mask = detector("DeformableDetr"), torch.ones(2, 64, 96).long()
    mask[1, :, 64:] = 0
    inputs = {"pixel_values": PICTURES, "pixel_mask": mask}
    report = verify(model, **inputs)
    assert report.output_error == 0
    assert report.value_error is not None
    assert report.value_error < 1e-6
    assert {"encoder.0.self", *SITES} <= set(report.value_errors)
    real = torch.cat([(torch.arange(rows * columns) % columns) < columns * 2 / 3 for rows, columns in SIZES])
    instrument(model)
    with record(values=True) as trace:
        model(**inputs)
    for site in ("encoder.0.self", *SITES):
        call = trace[site]
        assert torch.equal(call.key_mask[1], real)
        assert not call.weights()[1][..., ~real].any()
        assert call.weights()[0][..., ~real].any()
        assert call.text(1).num_keys <= 126
