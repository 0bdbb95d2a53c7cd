"""Sites of attention layers, maps by any index, and texts in padded batches, which are measured and edited as alone."""

import copy
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.viz_core.trace.attention_cases import CASES, recorded
from viz_core import trace as tracing
from viz_core.attention import AdditiveAttention
from viz_core.maps.contributions import contribution_norms, contribution_sum, value_lengths
from viz_core.maps.fingerprints import measure_layer
from viz_core.maps.register import MEASURES
from viz_core.models import (
    EncoderDecoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqEncoder,
    TransformerDecoder,
    TransformerEncoder,
    ViT,
)
from viz_core.trace import source as recorded_module


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("block_budget")
def test_every_tile_is_the_slice_of_the_full_map(case: str) -> None:
    call, _ = recorded(case)
    full = call.weights()
    q, k = call.num_queries, call.num_keys
    rows = [None, slice(0, 1), slice(2, 5), slice(-3, None), slice(1, q, 3), slice(4, 4), slice(0, 999)]
    columns = [None, slice(0, 1), slice(3, 6), slice(-2, None), slice(1, k, 2), slice(5, 5)]
    heads = [None, 0, -1, slice(1, 3), slice(-2, None), slice(2, 2), slice(0, None, 2)]
    for (i, head), (j, row) in itertools.product(enumerate(heads), enumerate(rows)):
        column = columns[(i + j) % len(columns)]  # every pair of a head, rows and columns is there
        tile = call.weights(head=head, queries=row, keys=column)
        sliced = full[:, slice(None) if head is None else head]
        sliced = sliced[..., row or slice(None), column or slice(None)]
        assert (tile.shape, tile.dtype) == (sliced.shape, sliced.dtype)
        assert ((tile - sliced).abs() <= 2e-7).all(), (head, row, column)  # a third of what assert_close takes


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("block_budget")
def test_overview_is_torchs_adaptive_max_pooling(case: str) -> None:
    call, _ = recorded(case)
    for size in (1, 2, 3, 4, 5, 7, 8, 9, 64):
        expected = F.adaptive_max_pool2d(call.weights(), (min(size, call.num_queries), min(size, call.num_keys)))
        torch.testing.assert_close(call.overview(size), expected, atol=2e-7, rtol=0)


def test_a_map_is_never_built_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a budget of 100 rows no block of scores holds more of them."""
    with tracing.record() as trace:
        tracing.attend(torch.randn(1, 2, 1000, 4), torch.randn(1, 2, 1000, 4), torch.randn(1, 2, 1000, 4))
    monkeypatch.setattr(recorded_module, "_BLOCK_SCORES", 100 * 2 * 1000)
    sizes, softmax = list[int](), torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda x, **options: sizes.append(x.numel()) or softmax(x, **options))
    call = trace["attention.0"]
    call.overview(3)
    call.weights()
    call.weights(head=0, queries=slice(0, 500))
    assert max(sizes) == 200 * 1000


@pytest.fixture
def small() -> tracing.AttentionCall:
    q, k = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 6, 4)
    with tracing.record() as trace:
        tracing.attend(q, k, k)
    return trace["attention.0"]


@pytest.mark.parametrize("number", [int, np.int64, np.uint8, torch.tensor], ids=["int", "int64", "uint8", "tensor"])
def test_a_number_drops_its_axis_and_slices_and_ranges_keep_it(small: tracing.AttentionCall, number: type) -> None:
    whole = small.weights()
    assert torch.equal(small.weights(head=number(1)), whole[:, 1])
    assert torch.equal(small.weights(queries=number(2)), whole[:, :, 2])
    assert torch.equal(small.weights(keys=number(2)), whole[:, :, :, 2])
    assert torch.equal(small.weights(number(0), number(4), number(5)), whole[:, 0, 4, 5])
    assert torch.equal(small.weights(slice(1, 3), range(1, 5, 2), range(0, 6, 3)), whole[:, 1:3, 1:5:2, 0:6:3])
    assert small.weights(keys=range(0)).shape == (2, 3, 5, 0)


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ({"head": 3}, "head: expected 0 to 2, got 3"),
        ({"keys": np.int64(6)}, "keys: expected 0 to 5, got 6"),
        ({"keys": range(3, 8)}, "keys: expected places from 0 to 5"),
        ({"head": slice(2, 0, -1)}, "head: expected places in order, got step -1"),
        ({"keys": slice(0.5)}, "keys: expected a slice of whole numbers"),
        ({"queries": True}, "queries: expected a number, a slice or a range, got bool"),
    ],
)
@pytest.mark.usefixtures("shapes_unchecked")
def test_wrong_indices_are_refused(small: tracing.AttentionCall, indices: dict[str, object], message: str) -> None:
    with pytest.raises(IndexError, match=message):
        small.weights(**indices)
    with pytest.raises(ValueError, match="size: expected at least 1, got 0"):
        small.overview(0)


def test_masked_keys_are_distinguished_from_weights_near_0() -> None:
    queries = torch.full((2, 1, 3, 2), 20.0)
    keys = torch.tensor([20.0, -20.0, 20.0])[:, None].expand(2, 1, 3, 2)
    mask = torch.tensor([[True, True, True], [True, True, False]])[:, None, None]
    with tracing.record() as trace, tracing.intervene({"attention.0": tracing.knock_out(0, query=2, key=0)}):
        tracing.attend(queries, keys, keys, mask=mask, causal=True, site=None)
        tracing.record_weights(torch.rand(1, 1, 2, 2))
    call = trace["attention.0"]
    allowed = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 1, 1]]).bool()
    assert torch.equal(call.chosen[:, 0], allowed & mask[:, 0])
    assert call.weights()[0, 0, 1].tolist() == [1, 0, 0]
    assert torch.equal(call.text(1, on_itself=True).chosen[0, 0], allowed[:2, :2])
    with pytest.raises(ValueError, match=r"site 'attention.1': expected queries and keys, got whole maps"):
        _ = trace["attention.1"].chosen


def sites_by_path(model: nn.Module) -> dict[str, str]:
    return {path: site for path, module in model.named_modules() if (site := tracing.site_of(module)) is not None}


@pytest.fixture
def transformer() -> EncoderDecoder:
    sizes = {"vocab_size": 9, "num_hiddens": 8, "ffn_num_hiddens": 8, "num_heads": 2, "num_blks": 2, "dropout": 0.0}
    return EncoderDecoder(TransformerEncoder(**sizes), TransformerDecoder(**sizes)).eval()


PLACES = {
    "encoder.blks.block0.attention": "encoder.0.self",
    "encoder.blks.block1.attention": "encoder.1.self",
    "decoder.blks.block0.attention1": "decoder.0.self",
    "decoder.blks.block0.attention2": "decoder.0.cross",
    "decoder.blks.block1.attention1": "decoder.1.self",
    "decoder.blks.block1.attention2": "decoder.1.cross",
}


def test_a_model_tells_its_layers_where_they_stand(transformer: EncoderDecoder) -> None:
    assert sites_by_path(transformer) == PLACES
    assert sites_by_path(ViT(8, 4, 8, 8, 2, 2, 0.0, 0.0)) == {
        "blks.0.attention": "encoder.0.self",
        "blks.1.attention": "encoder.1.self",
    }
    assert sites_by_path(Seq2SeqAttentionDecoder(9, 4, 4, 2)) == {"attention": "decoder.0.cross"}
    assert sites_by_path(Seq2SeqEncoder(9, 4, 4, 2)) == {}
    assert sites_by_path(copy.deepcopy(transformer)) == PLACES
    for module in transformer.modules():
        vars(module).pop("attention_site", None)
    assert tracing.name_sites(transformer) == tuple(PLACES.values())


def test_sites_of_torchs_own_layers_are_found_without_a_word_to_them() -> None:
    model = nn.Transformer(8, 2, 1, 1, 8, batch_first=True)
    places = {module: path for path, module in model.named_modules()}
    assert {places[layer]: site for layer, site in tracing.find_sites(model).items()} == {
        "encoder.layers.0.self_attn": "encoder.0.self",
        "decoder.layers.0.self_attn": "decoder.0.self",
        "decoder.layers.0.multihead_attn": "decoder.0.cross",
    }
    assert sites_by_path(model) == {}
    as_torchvision_names_them = nn.ModuleDict({"encoder_layer_7": nn.ModuleDict({"x": nn.MultiheadAttention(8, 2)})})
    assert list(tracing.find_sites(as_torchvision_names_them).values()) == ["encoder.7.self"]
    Decoder = type("Decoder", (nn.Sequential,), {})  # as in x-transformers: no path says so
    assert list(tracing.find_sites(nn.ModuleDict({"attn_layers": Decoder(nn.MultiheadAttention(8, 2))})).values()) == [
        "decoder.0.self"
    ]


HEADS, WIDTH, LONG = 3, 4, 9
SITE = "encoder.0.self"


def text_of(n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    drawn = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(1, HEADS, n, WIDTH, generator=drawn) for _ in range(3))  # type: ignore[return-value]


def places(n: int, side: str) -> slice:
    return slice(LONG - n, LONG) if side == "left" else slice(0, n)


def batch_of(n: int, side: str, *, additive: bool = False, causal: bool = False) -> tuple[Any, dict[str, Any]]:
    padded = []
    for own, other, noise in zip(text_of(n), text_of(LONG, 1), text_of(LONG, 2), strict=True):
        row = noise.clone()
        row[:, :, places(n, side)] = own
        padded.append(torch.cat([row, other]))
    mask = torch.zeros(2, 1, LONG, LONG, dtype=torch.bool)
    mask[0, :, :, places(n, side)], mask[1] = True, True
    if causal:
        mask &= torch.ones(LONG, LONG, dtype=torch.bool).tril()
    return padded, {"bias": torch.where(mask, 0.0, -1e9)} if additive else {"mask": mask}


def attended(inputs: Any, site: str = SITE, edits: dict[str, Any] | None = None, **options: Any) -> Any:
    with tracing.intervene(edits or {}), tracing.record(values=True) as trace:
        output = tracing.attend(*inputs, site=site, **options)
    return output, trace[site]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("site", [SITE, "decoder.1.cross"])
def test_measures_of_a_padded_text_are_those_of_the_text_alone(
    side: str, additive: bool, causal: bool, site: str
) -> None:
    n, on_itself = 5, site == SITE
    inputs, options = batch_of(n, side, additive=additive, causal=causal)
    with tracing.record(token_mask={"decoder": options_tokens(n, side)} if not on_itself else None) as trace:
        tracing.attend(*inputs, site=site, **options)
    if not on_itself and side == "left" and causal:
        return
    alone = attended(text_of(n), site, causal=causal)[1]
    separators = (1, n - 1)
    start = places(n, side).start
    padded = measure_layer(trace[site], 0, on_itself=on_itself, separators=tuple(start + each for each in separators))
    expected = measure_layer(alone, on_itself=on_itself, separators=separators)
    assert {name for name, each in MEASURES.items() if each.sums and not each.signed} - {"distance", "nearby"} - (
        {"information"} if on_itself else {"diagonal", "previous", "next"}
    ) == padded.fingerprints[0].keys()
    for found, wanted in zip(padded.fingerprints, expected.fingerprints, strict=True):
        assert found == pytest.approx(wanted, abs=1e-5)
    torch.testing.assert_close(padded.overview, expected.overview)
    assert measure_layer(trace[site], 1, on_itself=on_itself).fingerprints[0]["entropy"] > 0


def options_tokens(n: int, side: str) -> Tensor:
    tokens = torch.zeros(2, LONG, dtype=torch.bool)
    tokens[0, places(n, side)], tokens[1] = True, True
    return tokens


@pytest.mark.parametrize("what", ["weights", "output"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_patch_from_a_padded_batch_is_that_from_each_text_alone(side: str, what: str) -> None:
    n = 5
    inputs, options = batch_of(n, side)
    source = attended(inputs, **options)[1]
    other = "right" if side == "left" else "left"
    target, masks = batch_of(n, other)
    shifted = [tensor.roll(1, dims=1) for tensor in target]
    output, _ = attended(shifted, edits={SITE: tracing.patch(1, source, what)}, **masks)
    alone = attended(text_of(n))[1]
    own = [tensor[:1, :, places(n, other)] for tensor in shifted]
    expected, _ = attended(own, edits={SITE: tracing.patch(1, alone, what)})
    torch.testing.assert_close(output[:1, :, places(n, other)], expected, atol=1e-5, rtol=0)


def test_queries_of_cross_attention_are_the_tokens_of_the_self_attention_before() -> None:
    targets = torch.arange(5) < torch.tensor([3, 5])[:, None]
    queries, keys = torch.randn(2, HEADS, 5, WIDTH), torch.randn(2, HEADS, 7, WIDTH)
    with tracing.record() as trace:
        tracing.attend(queries, queries, queries, mask=targets[:, None, None], site="decoder.0.self")
        tracing.attend(queries, keys, keys, site="decoder.0.cross")
    assert torch.equal(trace["decoder.0.cross"].query_mask, targets)


def test_a_token_mask_of_another_size_or_with_a_gap_is_refused() -> None:
    with (
        pytest.raises(ValueError, match="token_mask: expected \\(1, 5\\)"),
        tracing.record(token_mask=torch.ones(1, 4).bool()),
    ):
        tracing.attend(*text_of(5), site=SITE)
    with pytest.raises(ValueError, match="between"), tracing.record(token_mask=torch.tensor([[True, False, True]])):
        pass


def test_padding_is_stored_in_files_and_excluded_from_means(tmp_path: Path) -> None:
    inputs, options = batch_of(5, "left")
    _, call = attended(inputs, **options)
    outputs = torch.cat([tracing.head_outputs(call.text(row))[0] for row in (0, 1)], dim=1)
    torch.testing.assert_close(tracing.mean_outputs(call), outputs.mean(dim=1))
    counted = options["mask"][:, 0, 0] & (torch.arange(LONG) != LONG - 1)
    some = torch.cat([tracing.head_outputs(call)[row][:, counted[row]] for row in (0, 1)], dim=1)
    torch.testing.assert_close(tracing.mean_outputs(call, counted), some.mean(dim=1))
    layer = AdditiveAttention(4, 4, 4, 0.0)
    with tracing.record(values=True) as trace:
        layer(torch.randn(2, 3, 4), torch.randn(2, 6, 4), torch.randn(2, 6, 4), torch.tensor([2, 6]))
    tracing.save_trace(trace, tmp_path / "trace.safetensors")
    loaded = tracing.load_trace(tmp_path / "trace.safetensors")[0]
    assert loaded.key_mask.sum(dim=1).tolist() == [2, 6]
    assert loaded.text(0).num_keys == 2


def test_contributions_see_what_edits_of_the_output_write() -> None:
    W_o = torch.nn.Linear(HEADS * WIDTH, 6, bias=False)
    factor = torch.tensor([[0.5, -2.0], [3.0, 0.0]])
    inputs, options = batch_of(5, "right")
    output, call = attended(inputs, edits={SITE: [tracing.gate([0, 2], factor), tracing.off(1)]}, **options)
    expected = W_o(output.transpose(1, 2).flatten(2)).detach()
    torch.testing.assert_close(contribution_sum(call, W_o), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(tracing.head_outputs(call), output, atol=1e-5, rtol=0)
    _, plain = attended(inputs, **options)
    torch.testing.assert_close(
        value_lengths(call, W_o)[:, [0, 2]], value_lengths(plain, W_o)[:, [0, 2]] * factor.abs()[..., None]
    )
    for edit in (tracing.mean(1, torch.zeros(HEADS, WIDTH)), tracing.patch(1, plain, "output")):
        _, replaced = attended(inputs, edits={SITE: edit}, **options)
        with pytest.raises(ValueError, match="the output of head 1 was replaced"):
            contribution_norms(replaced, W_o)


def test_a_text_of_a_causal_call_keeps_its_window() -> None:
    """With a cache: three queries after four keys, each of which attends to two keys."""
    queries, keys = torch.randn(2, HEADS, 3, WIDTH), torch.randn(2, HEADS, 7, WIDTH)
    visible = torch.arange(7) >= torch.arange(4, 7)[:, None] - 1
    mask = torch.cat([visible[None, None], visible[None, None]])
    with tracing.record() as trace:
        tracing.attend(queries, keys, keys, mask=mask, causal=True, site=SITE)
    call = trace[SITE]
    own = call.text(1)
    assert own.num_keys == 4
    assert own.source.causal is False
    torch.testing.assert_close(own.weights(), call.weights()[1:, :, :, 3:])
    assert not own.weights()[0, :, -1, :2].any()
