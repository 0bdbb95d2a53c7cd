"""Sites of attention layers, and maps by any index, in tiles and as thumbnails."""

import copy
import io
import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.viz_core.trace.attention_cases import CASES, recorded
from viz_core.models import (
    EncoderDecoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqEncoder,
    TransformerDecoder,
    TransformerEncoder,
    ViT,
)
from viz_core.trace import (
    AttentionCall,
    attend,
    find_sites,
    intervene,
    knock_out,
    name_sites,
    record,
    record_weights,
    site_of,
)
from viz_core.trace import source as recorded_module
from viz_core.trace.edits import Edit, Positions
from viz_core.trace.source import Projected


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


@dataclass(frozen=True)
class Farther(Edit):
    """Scores less by the distance, in a type of its own, with or without a graph."""

    dtype: torch.dtype = torch.float64

    def scores(self, scores: Tensor, head: int, at: Positions) -> Tensor:
        places = torch.arange(scores.shape[-1], dtype=self.dtype)
        with torch.enable_grad():
            slope = torch.full((), 0.3, dtype=self.dtype, requires_grad=self.dtype == torch.float32)
            return scores.to(self.dtype) - slope * places


@pytest.mark.parametrize("edited", [torch.float64, torch.float16, torch.float32])
@pytest.mark.parametrize("default", [torch.float32, torch.float64, torch.bfloat16])
def test_maps_are_float32_whatever_an_edit_or_the_default_type_is(edited: torch.dtype, default: torch.dtype) -> None:
    torch.manual_seed(0)
    queries, keys = torch.randn(2, 1, 2, 5, 4)
    with intervene({"encoder.0.self": Farther(None, edited)}), record() as trace:
        attend(queries, keys, keys, site="encoder.0.self")
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        found = trace[0].weights()
    finally:
        torch.set_default_dtype(before)
    expected = (queries @ keys.mT / 2 - 0.3 * torch.arange(5)).softmax(dim=-1)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=2e-3 if edited == torch.float16 else 1e-6, rtol=0)


def test_a_large_map_begins_with_a_huge_page_and_is_made_of_few_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, rows = torch.randn(1, 2, 700, 8), list[int]()
    with record() as trace:
        attend(queries, queries, queries, causal=True)
    original = Projected._weights

    def counted(own: Projected, heads: slice, block: slice, *given: object) -> Tensor:
        rows.append(block.stop)
        return original(own, heads, block, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Projected, "_weights", counted)
    weights = trace["attention.0"].weights()
    assert weights.data_ptr() % 2**21 == 0
    assert (weights.shape, weights.dtype, weights.is_contiguous()) == ((1, 2, 700, 700), torch.float32, True)
    assert max(stop - start for start, stop in zip([0, *rows], rows, strict=False)) <= 128
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(1, 2, 700))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("block_budget")
def test_overview_is_torchs_adaptive_max_pooling(case: str) -> None:
    call, _ = recorded(case)
    for size in (1, 2, 3, 4, 5, 7, 8, 9, 64):
        expected = F.adaptive_max_pool2d(call.weights(), (min(size, call.num_queries), min(size, call.num_keys)))
        torch.testing.assert_close(call.overview(size), expected, atol=2e-7, rtol=0)


def test_a_map_is_never_built_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a budget of 100 rows no block of scores holds more of them."""
    with record() as trace:
        attend(torch.randn(1, 2, 1000, 4), torch.randn(1, 2, 1000, 4), torch.randn(1, 2, 1000, 4))
    monkeypatch.setattr(recorded_module, "_BLOCK_SCORES", 100 * 2 * 1000)
    largest, softmax = 0, torch.softmax

    def watched(scores: Tensor, dim: int, **options: Tensor | None) -> Tensor:
        nonlocal largest
        largest = max(largest, scores.numel())
        return softmax(scores, dim=dim, **options)

    monkeypatch.setattr(torch, "softmax", watched)
    call = trace["attention.0"]
    call.overview(3)
    assert largest == 100 * 2 * 1000
    call.weights()
    assert largest == 100 * 2 * 1000
    call.weights(head=0, queries=slice(0, 500))
    assert largest == 200 * 1 * 1000


@pytest.fixture
def small() -> AttentionCall:
    q, k = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 6, 4)
    with record() as trace:
        attend(q, k, k)
    return trace["attention.0"]


@pytest.mark.parametrize("number", [int, np.int64, np.uint8, torch.tensor], ids=["int", "int64", "uint8", "tensor"])
def test_a_number_drops_its_axis_and_slices_and_ranges_keep_it(small: AttentionCall, number: type) -> None:
    whole = small.weights()
    assert torch.equal(small.weights(head=number(1)), whole[:, 1])
    assert torch.equal(small.weights(queries=number(2)), whole[:, :, 2])
    assert torch.equal(small.weights(keys=number(2)), whole[:, :, :, 2])
    assert torch.equal(small.weights(number(0), number(4), number(5)), whole[:, 0, 4, 5])
    assert torch.equal(small.weights(slice(1, 3), range(1, 5, 2), range(0, 6, 3)), whole[:, 1:3, 1:5:2, 0:6:3])
    assert torch.equal(small.weights(queries=slice(None, None, 2)), whole[:, :, ::2])
    assert torch.equal(small.weights(slice(0, 3, 2), keys=range(1, 6, 2)), whole[:, ::2, :, 1::2])
    assert small.weights(range(1, 2), slice(2, 2)).shape == (2, 1, 0, 6)
    assert small.weights(keys=range(0)).shape == (2, 3, 5, 0)


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ({"head": 3}, "head: expected 0 to 2, got 3"),
        ({"head": -4}, "head: expected 0 to 2, got -4"),
        ({"queries": 5}, "queries: expected 0 to 4, got 5"),
        ({"keys": np.int64(6)}, "keys: expected 0 to 5, got 6"),
        ({"keys": range(3, 8)}, "keys: expected places from 0 to 5"),
        ({"queries": slice(None, None, -1)}, "queries: expected places in order, got step -1"),
        ({"head": slice(2, 0, -1)}, "head: expected places in order, got step -1"),
        ({"head": torch.tensor(1.0)}, "head: expected a number, a slice or a range, got Tensor"),
        ({"keys": slice(0.5)}, "keys: expected a slice of whole numbers"),
        ({"keys": slice(0, 3, 0)}, "keys: expected places in order, got step 0"),
        ({"queries": 1.0}, "queries: expected a number, a slice or a range, got float"),
        ({"queries": True}, "queries: expected a number, a slice or a range, got bool"),
        ({"keys": [0, 1]}, "keys: expected a number, a slice or a range, got list"),
    ],
)
@pytest.mark.usefixtures("shapes_unchecked")
def test_wrong_indices_are_refused(small: AttentionCall, indices: dict[str, object], message: str) -> None:
    with pytest.raises(IndexError, match=message):
        small.weights(**indices)
    with pytest.raises(ValueError, match="size: expected at least 1, got 0"):
        small.overview(0)


def test_masked_keys_are_distinguished_from_weights_near_0() -> None:
    queries = torch.full((2, 1, 3, 2), 20.0)
    keys = torch.tensor([20.0, -20.0, 20.0])[:, None].expand(2, 1, 3, 2)
    mask = torch.tensor([[True, True, True], [True, True, False]])[:, None, None]
    with record() as trace, intervene({"attention.0": knock_out(0, query=2, key=0)}):
        attend(queries, keys, keys, mask=mask, causal=True, site=None)
        record_weights(torch.rand(1, 1, 2, 2))
    call = trace["attention.0"]
    allowed = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 1, 1]]).bool()
    assert torch.equal(call.chosen[:, 0], allowed & mask[:, 0])
    assert call.weights()[0, 0, 1].tolist() == [1, 0, 0]
    assert torch.equal(call.text(1, on_itself=True).chosen[0, 0], allowed[:2, :2])
    with pytest.raises(ValueError, match=r"site 'attention.1': expected queries and keys, got whole maps"):
        _ = trace["attention.1"].chosen


def sites_by_path(model: nn.Module) -> dict[str, str]:
    """The site of each layer that has one, by its path in the model."""
    return {path: site for path, module in model.named_modules() if (site := site_of(module)) is not None}


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
    for module in transformer.modules():
        vars(module).pop("attention_site", None)
    assert name_sites(transformer) == tuple(PLACES.values())
    assert sites_by_path(transformer) == PLACES


def test_sites_of_torchs_own_layers_are_found_without_a_word_to_them() -> None:
    model = nn.Transformer(8, 2, 1, 1, 8, batch_first=True)
    places = {module: path for path, module in model.named_modules()}
    assert {places[layer]: site for layer, site in find_sites(model).items()} == {
        "encoder.layers.0.self_attn": "encoder.0.self",
        "decoder.layers.0.self_attn": "decoder.0.self",
        "decoder.layers.0.multihead_attn": "decoder.0.cross",
    }
    assert sites_by_path(model) == {}
    as_torchvision_names_them = nn.ModuleDict({"encoder_layer_7": nn.ModuleDict({"x": nn.MultiheadAttention(8, 2)})})
    assert list(find_sites(as_torchvision_names_them).values()) == ["encoder.7.self"]
    Decoder = type("Decoder", (nn.Sequential,), {})  # as in x-transformers: no path says so
    assert list(find_sites(nn.ModuleDict({"attn_layers": Decoder(nn.MultiheadAttention(8, 2))})).values()) == [
        "decoder.0.self"
    ]


def test_copies_keep_their_sites_and_a_state_dict_knows_none(transformer: EncoderDecoder) -> None:
    assert sites_by_path(copy.deepcopy(transformer)) == PLACES
    stored = io.BytesIO()
    torch.save(transformer, stored)
    stored.seek(0)
    assert sites_by_path(torch.load(stored, weights_only=False)) == PLACES
    assert not any("site" in name for name in transformer.state_dict())
