"""Deformable attention of a detector: points and weights of the model's own code, as a map over places."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from PIL import Image
from torch import Tensor

from viz_core.hub import coverage, instrument, restore, verify
from viz_core.trace import intervene, load_trace, off, record, save_trace
from viz_core.trace.points import SampledPoints
from viz_core.view import view
from viz_core.view.requests import read_request
from viz_core.view.responses import answer, every_request

PICTURES = torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(3))
SIZES = ((8, 12), (4, 6), (2, 3))
SITES = ("decoder.0.cross", "decoder.1.cross")


def detector(name: str, **changes: Any) -> Any:
    """A detector whose layers read three feature maps, at points that random weights spread over the picture."""
    sizes = [16, 24, 32]
    backbone = {"embedding_size": 8, "hidden_sizes": [8, *sizes], "depths": [1] * 4, "layer_type": "basic"}
    backbone["out_features"] = ["stage2", "stage3", "stage4"]
    options = dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim"), 32)
    options |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4)
    options |= {"encoder_layers": 1, "decoder_layers": 2, "num_queries": 7}
    if name != "DeformableDetr":
        family = transformers.HGNetV2Config if name == "DFine" else transformers.RTDetrResNetConfig
        if name == "DFine":  # its layers read 3, 6 and 3 points
            stages = {"stage_in_channels": [8, 8, 16, 24], "stage_mid_channels": [8] * 4}
            stages |= {"stage_out_channels": [8, *sizes], "stage_num_blocks": [1] * 4, "stage_numb_of_layers": [1] * 4}
            backbone |= {"stem_channels": [3, 8, 8], **stages}
            options |= {"decoder_n_points": [3, 6, 3], "hidden_expansion": 1.0}
        options |= {"backbone_config": family(**backbone), "encoder_hidden_dim": 32}
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
        config = getattr(transformers, f"{name}Config")(**options, **changes)
        model = getattr(transformers, f"{name}Model")(config).eval().requires_grad_(False)
        for path, weights in model.named_parameters():
            if "sampling_offsets" in path or "attention_weights" in path:
                torch.nn.init.normal_(weights, std=0.5)
    return model


def written_by_heads(model: Any) -> dict[str, Tensor]:
    """Inputs of output projections in the next pass, (batch, heads, queries, v)."""
    found: dict[str, Tensor] = {}
    for site, layer in zip(SITES, model.decoder.layers, strict=True):

        def keep(_layer: Any, inputs: Any, outputs: Any = None, site: str = site) -> None:
            found[site] = (inputs if outputs is None else outputs)[0].unflatten(-1, (4, -1)).transpose(1, 2)

        if hasattr(layer.encoder_attn, "output_proj"):
            layer.encoder_attn.output_proj.register_forward_pre_hook(keep)
        else:
            layer.encoder_attn.register_forward_hook(keep)
    return found


FAMILIES = [("RTDetr", torch.float32, 1e-6), ("RTDetr", torch.bfloat16, 2e-2)]
FAMILIES += [(name, torch.float32, 1e-6) for name in ("RTDetrV2", "DFine")]


@pytest.mark.parametrize(("name", "dtype", "most"), FAMILIES)
def test_weights_times_values_are_what_heads_write(name: str, dtype: torch.dtype, most: float, tmp_path: Path) -> None:
    model, pictures = detector(name).to(dtype), PICTURES.to(dtype)
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
        assert source.counts == ((3, 6, 3) if name == "DFine" else (4, 4, 4))
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
    points = torch.tensor([[[[[0.1875, 0.0], [0.5, 0.5]]]]])
    source = SampledPoints(points, torch.tensor([[[[0.8, 0.2]]]]), ((2, 4), (1, 1)), (1, 1))
    assert source.read_by(0, 0).tolist() == [
        [[0.1875, 0.0, 0.800000011920929, 0.0], [0.5, 0.5, 0.20000000298023224, 1.0]]
    ]
    expected = torch.zeros(9)
    expected[:2] = 0.8 * 0.5 * torch.tensor([0.75, 0.25])
    expected[8] = 0.2
    every = slice(0, 1)
    torch.testing.assert_close(source.rows(every, every).flatten(), expected)
    padded = SampledPoints(points, source.point_weights, source.sizes, (1, 1), key_tokens=torch.arange(9)[None] != 1)
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


def test_points_lie_over_the_picture() -> None:
    """Each query's points and weights of every head are sent as they are, and those of a file too."""
    model = detector("DFine")
    instrument(model)
    with record() as trace:
        model(pixel_values=PICTURES[:1])
    shown = view(trace, picture=Image.new("RGB", (96, 64)))
    group = next(group for group in shown.groups if group.calls[0].site == SITES[0])
    assert group.image is not None
    assert (group.image.levels, group.image.of_queries, shown.state.group) == (SIZES, False, group.id)
    assert group.key_tokens[8 * 12 + 4 * 6 - 1 : 8 * 12 + 4 * 6 + 2] == ("2: 4, 6", "3: 1, 1", "3: 1, 2")
    request = read_request(f"points 0 {group.id} 1 q4")
    (part,) = answer(lambda _input, _id: group, [request]).values()
    source = trace[SITES[1]].source
    assert isinstance(source, SampledPoints)
    expected = torch.cat([source.points[0, 4], source.point_weights[0, 4][..., None]], dim=-1)
    assert torch.equal(torch.from_numpy(part.array[..., :3]), expected)
    assert part.array[0, :, 3].tolist() == [0] * 3 + [1] * 6 + [2] * 3
    assert not answer(lambda _input, _id: group, [read_request(f"points 0 {group.id} 1 {pin}") for pin in ("k4", "q7")])
    listed = [str(request) for request in every_request(shown.groups, (), 2**20)]
    assert f"points 0 {group.id} 0 q6" in listed
    with pytest.raises(ValueError, match="picture: expected deformable attention"):
        view(trace["decoder.0.self"], picture=Image.new("RGB", (96, 64)))


def test_points_that_are_rounded_to_places_have_the_reason() -> None:
    model = detector("RTDetrV2", decoder_method="discrete")
    assert {row.code for row in coverage(model) if row.site is None} == {"points"}
