"""Differential attention, what window settings mean, and points of deformable attention, against models' own code."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from PIL import Image
from torch import Tensor, nn

from tests.viz_core.hub.families import in_memory
from tests.viz_core.hub.test_families import difference
from viz_core.hub import coverage, instrument, verify
from viz_core.maps.contributions import contribution_sum
from viz_core.maps.score_products import score_products
from viz_core.trace import gate, head_outputs, intervene, load_trace, off, record, save_trace, uniform
from viz_core.trace.points import SampledPoints
from viz_core.view import view
from viz_core.view.requests import read_request
from viz_core.view.responses import answer, every_request

IDS = torch.tensor([[5, 9, 3, 17, 8, 4], [0, 0, 7, 12, 30, 6]])
MASK = (IDS > 0).long()
SITE = "decoder.1.self"


@pytest.fixture(scope="module")
def model() -> Any:
    made = in_memory("diffllama", num_attention_heads=8, num_key_value_heads=4, head_dim=4)
    for name, weights in made.named_parameters():
        if weights.dim() > 1 or "lambda" in name:
            nn.init.normal_(weights, std=0.3)
    return made


@pytest.fixture(scope="module")
def eager(model: Any) -> tuple[list[Tensor], Tensor]:
    model.set_attn_implementation("eager")
    with torch.no_grad():
        result = model(IDS, attention_mask=MASK, output_attentions=True)
    maps = [difference(each, model, f"decoder.{i}.self").detach() for i, each in enumerate(result.attentions)]
    instrument(model)
    return maps, result.logits


def test_maps_and_outputs(model: Any, eager: tuple[list[Tensor], Tensor], tmp_path: Path) -> None:
    written: list[Tensor] = []
    outputs: list[Tensor] = []
    own = model.model.layers[1].self_attn
    hooks = [
        own.groupnorm.register_forward_pre_hook(lambda _, inputs: written.append(inputs[0].transpose(1, 2))),
        own.o_proj.register_forward_hook(lambda _layer, _inputs, output: outputs.append(output)),
    ]
    with torch.no_grad(), record(values=True) as trace:
        logits = model(IDS, attention_mask=MASK).logits
    for hook in hooks:
        hook.remove()
    assert trace.sites == ("decoder.0.self", SITE)
    assert all(call.signed and call.num_heads == 4 for call in trace)
    real = MASK.bool()
    for call, expected in zip(trace, eager[0], strict=True):
        assert float(expected.min()) < -0.01, "maps without a negative weight would prove nothing"
        assert float((call.weights() - expected).abs().amax(dim=(1, 3))[real].max()) < 3e-6
    torch.testing.assert_close(logits[real], eager[1][real], atol=1e-5, rtol=0)
    call = trace[SITE]
    torch.testing.assert_close(head_outputs(call).transpose(1, 2)[real], written[0].transpose(1, 2)[real])
    total = contribution_sum(call, own.o_proj)
    torch.testing.assert_close(total[real], outputs[0][real], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(call.text(1).weights(), call.weights()[1:, :, 2:, 2:])
    save_trace(trace, tmp_path / "difference.safetensors")
    loaded = load_trace(tmp_path / "difference.safetensors")[SITE]
    assert loaded.signed
    assert torch.equal(loaded.weights(), call.weights())
    with pytest.raises(ValueError, match="expected queries and keys, got difference of softmaxes"):
        score_products(call, 0, 1, 0)


@pytest.mark.usefixtures("eager")
def test_heads_are_pairs_of_softmaxes(model: Any) -> None:
    edits = {SITE: [off(1), gate(2, 0.5)]}
    projection, given = model.model.layers[1].self_attn.groupnorm, list[Tensor]()
    hook = projection.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].detach()))
    with record(values=True) as plain, torch.no_grad():
        model(IDS)
    with intervene(edits), record(values=True) as trace:
        model(IDS).logits.sum().backward()
    hook.remove()
    before, after = head_outputs(plain[SITE]), head_outputs(trace[SITE])
    assert not after[:, 1].any()
    assert not trace[SITE].weights()[:, 1].any()
    torch.testing.assert_close(after[:, 2], before[:, 2] / 2)
    assert torch.equal(after[:, [0, 3]], before[:, [0, 3]])
    torch.testing.assert_close(given[1].transpose(1, 2), after, atol=1e-5, rtol=1e-4)
    assert model.model.layers[1].self_attn.lambda_q1.grad.abs().sum() > 0
    with pytest.raises(ValueError, match="expected off or gate"), intervene({SITE: uniform(0)}):
        model(IDS)
    with pytest.raises(ValueError, match="expected no differentiable"), record(differentiable=True):
        model(IDS)


# What a window setting of 4 shows (docs/conventions.md): keys by which a single layer's output at the query changes.
PAGE = Path(__file__).resolve().parents[3] / "docs" / "conventions.md"
N, QUERY = 16, 8
WORDS = {"input_ids": torch.arange(5, 5 + N)[None], "attention_mask": torch.ones(1, N, dtype=torch.long)}
SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16}
SIZES |= {"vocab_size": 64, "intermediate_size": 32, "max_position_embeddings": 64, "pad_token_id": 0}
SIZES |= {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
_LOCAL = {"layer_types": ["sliding_attention"]}
_SLIDING = {"sliding_window": 4}
_USED = {**_SLIDING, "use_sliding_window": True}
_EXPERTS = {"num_local_experts": 2, "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 8}
_PICTURE = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
_PICTURE |= {"image_size": 28, "patch_size": 14}
_TEXT = {**SIZES, **_LOCAL, **_SLIDING, "query_pre_attn_scalar": 16}
_BOTH_WAYS = {"use_bidirectional_attention": True}
_IMAGE = {"image_token_index": 60}
_CHUNKS = {"attention_chunk_size": 4, "layer_types": ["chunked_attention"], "no_rope_layers": [1]}

# What of a case's options the table names, in this order.
_NAMED = ("use_sliding_window", "sliding_window", "max_window_layers", "use_bidirectional_attention", "window_size")
_NAMED += ("attention_window_size", "local_attention", "attention_window", "local_radius", "attention_chunk_size")
NO_MAPS = ("longformer", "longt5")
# Family, and what is set beside the sizes.
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mistral", _SLIDING),
    ("mixtral", _SLIDING | _EXPERTS),
    *((family, _SLIDING) for family in ("ministral", "phi3", "starcoder2")),
    *((family, _SLIDING | _LOCAL) for family in ("gemma2", "gemma3_text")),
    ("gemma3_text", _SLIDING | _LOCAL | _BOTH_WAYS),
    *((family, _SLIDING | _LOCAL) for family in ("vaultgemma", "cohere2", "exaone4", "olmo3")),
    ("gpt_oss", _SLIDING | _LOCAL | _EXPERTS),
    ("smollm3", _USED | _LOCAL),
    ("qwen2", _SLIDING),
    ("qwen2", _USED),
    *((family, _USED | {"max_window_layers": 0}) for family in ("qwen2", "qwen3")),
    ("gpt_neo", {"num_layers": 1, "num_heads": 2, "attention_types": [[["local"], 1]], "window_size": 4}),
    ("recurrent_gemma", {"attention_window_size": 4, "block_types": ["attention"], "lru_width": 32}),
    ("nemotron_h", _SLIDING | {"layers_block_type": ["attention"]}),
    ("jamba", _SLIDING | _EXPERTS | {"attn_layer_period": 1, "attn_layer_offset": 0}),
    ("moshi", _SLIDING | {"ffn_dim": 32}),
    *((family, _LOCAL | {"local_attention": 4}) for family in ("modernbert", "modernbert-decoder")),
    ("longformer", {"attention_window": 4}),
    ("longt5", {"d_model": 32, "d_kv": 16, "d_ff": 32, "num_layers": 1, "num_heads": 2, "local_radius": 4}),
    ("t5gemma", {"encoder": _TEXT, "decoder": _TEXT}),
    ("t5gemma2", {"encoder": {"text_config": _TEXT, "vision_config": _PICTURE}, "decoder": _TEXT} | _IMAGE),
    ("llama4_text", _EXPERTS | _CHUNKS),
)


def setting(options: dict[str, Any]) -> str:
    text = options.get("decoder", options)
    return ", ".join(f"`{name}={text[name]}`" for name in _NAMED if name in text)


def build(family: str, options: dict[str, Any]) -> Any:
    config_class = transformers.CONFIG_MAPPING[family]
    own = {} if "encoder" in options or "d_model" in options else dict(SIZES)
    if family in ("nemotron_h", "gpt_neo"):
        own.pop("num_hidden_layers")
    if family in ("qwen2", "gpt_neo", "longformer", "starcoder2", "mixtral", "phi3"):
        own.pop("head_dim")
    config = config_class(**{**own, **options}, attn_implementation="eager")
    torch.manual_seed(0)
    return transformers.MODEL_MAPPING[config_class](config).eval().requires_grad_(False)


def around(keys: Tensor) -> tuple[int, int]:
    places = keys.nonzero().flatten()
    return QUERY - int(places.min()), int(places.max()) - QUERY


def reaching(model: Any) -> tuple[int, int]:
    network = model.get_encoder() if model.config.is_encoder_decoder else model
    found = list[Tensor]()
    embeddings = network.get_input_embeddings()
    hook = embeddings.register_forward_hook(lambda *given: found.append(given[2].requires_grad_()))
    output = network(**WORDS).last_hidden_state[0, QUERY]
    hook.remove()
    (grads,) = torch.autograd.grad((output * torch.randn(len(output))).sum(), found[0])
    return around(grads[0].abs().amax(dim=-1))


def recorded(model: Any) -> tuple[int, int]:
    instrument(model, verify=False)
    with record() as trace:
        (model.get_encoder() if model.config.is_encoder_decoder else model)(**WORDS)
    call = trace["encoder.0.self" if "encoder.0.self" in trace.sites else trace.sites[0]]
    return around(call.weights()[0, :, QUERY, -N:].amax(dim=0))


@pytest.mark.parametrize(("family", "options"), CASES, ids=[f"{case[0]} {setting(case[1])}" for case in CASES])
@pytest.mark.filterwarnings("ignore")
def test_the_map_shows_the_keys_that_reach_the_output(family: str, options: dict[str, Any], tmp_path: Path) -> None:
    model = build(family, options)
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, attn_implementation="eager").eval().requires_grad_(False)
    sides = reaching(model)
    cells = " | ".join(f"{left}, {right}" for left, right in (sides, reaching(loaded)))
    assert f"| {family} | {setting(options)} | {cells} |" in PAGE.read_text(encoding="utf-8")
    assert family in NO_MAPS or recorded(model) == sides


PICTURES = torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(3))
MAP_SIZES = ((8, 12), (4, 6), (2, 3))
SITES = ("decoder.0.cross", "decoder.1.cross")


def detector(name: str, **changes: Any) -> Any:
    sizes = [16, 24, 32]
    backbone = {"embedding_size": 8, "hidden_sizes": [8, *sizes], "depths": [1] * 4, "layer_type": "basic"}
    backbone["out_features"] = ["stage2", "stage3", "stage4"]
    options = dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim", "encoder_hidden_dim"), 32)
    options |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4)
    options |= {"encoder_layers": 1, "decoder_layers": 2, "num_queries": 7}
    if name == "DeformableDetr":
        del options["encoder_hidden_dim"]
        options |= {"backbone_config": transformers.ResNetConfig(**backbone), "num_feature_levels": 3}
        options |= {"backbone": None, "use_timm_backbone": False, "use_pretrained_backbone": False}
    else:
        options |= {"backbone_config": transformers.RTDetrResNetConfig(**backbone), "encoder_in_channels": sizes}
        options |= {"decoder_in_channels": [32] * 3, "num_denoising": 0, "eval_size": None}
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

        def keep(_layer: Any, inputs: Any, site: str = site) -> None:
            found[site] = inputs[0].unflatten(-1, (4, -1)).transpose(1, 2)

        layer.encoder_attn.output_proj.register_forward_pre_hook(keep)
    return found


@pytest.mark.parametrize(
    ("name", "dtype", "most"), [("RTDetr", torch.bfloat16, 2e-2), ("RTDetrV2", torch.float32, 1e-6)]
)
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
        assert source.sizes == MAP_SIZES
        assert source.counts == (4, 4, 4)
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
    assert {row.code for row in coverage(detector("RTDetrV2", decoder_method="discrete"))} >= {"points"}


def test_a_point_by_hand_and_padding() -> None:
    """At x = 0.25 of column 0 and 1, y = 0.5 above row 0 of a map of 2 x 4; and in the middle of a map of one place."""
    points = torch.tensor([[[[[0.1875, 0.0], [0.5, 0.5]]]]])
    source = SampledPoints(points, torch.tensor([[[[0.8, 0.2]]]]), ((2, 4), (1, 1)), (1, 1))
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
    errors = verify(model, **inputs).value_errors
    assert max(errors[site] for site in ("encoder.0.self", *SITES)) < 1e-6
    real = torch.cat([(torch.arange(rows * columns) % columns) < columns * 2 / 3 for rows, columns in MAP_SIZES])
    instrument(model)
    with record(values=True) as trace:
        model(**inputs)
    for site in ("encoder.0.self", *SITES):
        call = trace[site]
        assert torch.equal(call.key_mask[1], real)
        assert not call.weights()[1][..., ~real].any()
        assert call.weights()[0][..., ~real].any()


def test_points_lie_over_the_picture() -> None:
    model = detector("RTDetrV2")
    instrument(model)
    with record() as trace:
        model(pixel_values=PICTURES[:1])
    shown = view(trace, picture=Image.new("RGB", (96, 64)))
    group = next(group for group in shown.groups if group.calls[0].site == SITES[0])
    assert group.image is not None
    assert (group.image.levels, group.image.of_queries, shown.state.group) == (MAP_SIZES, False, group.id)
    assert group.key_tokens[8 * 12 + 4 * 6 - 1 : 8 * 12 + 4 * 6 + 2] == ("2: 4, 6", "3: 1, 1", "3: 1, 2")
    request = read_request(f"points 0 {group.id} 1 q4")
    (part,) = answer(lambda _input, _id: group, [request]).values()
    source = trace[SITES[1]].source
    assert isinstance(source, SampledPoints)
    expected = torch.cat([source.points[0, 4], source.point_weights[0, 4][..., None]], dim=-1)
    assert torch.equal(torch.from_numpy(part.array[..., :3]), expected)
    assert part.array[0, :, 3].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert not answer(lambda _input, _id: group, [read_request(f"points 0 {group.id} 1 {pin}") for pin in ("k4", "q7")])
    listed = [str(request) for request in every_request(shown.groups, (), 2**20)]
    assert f"points 0 {group.id} 0 q6" in listed
    with pytest.raises(ValueError, match="picture: expected deformable attention"):
        view(trace["decoder.0.self"], picture=Image.new("RGB", (96, 64)))
