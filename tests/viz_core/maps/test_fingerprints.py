"""Fingerfingerprints: by hand, against whole maps, and block by block."""

import math

import pytest
import torch

from viz_core.maps.distance import Patches, mean_attention_distance
from viz_core.maps.fingerprints import measure_layer, row_sum_error
from viz_core.maps.measures import (
    attention_entropy,
    combine_heads,
    diagonal_mass,
    key_mass,
    offset_mass,
    query_information,
)
from viz_core.trace import AttentionCall, attend, record, record_weights


def call_of(weights: torch.Tensor, site: str = "encoder.0.self") -> AttentionCall:
    with record() as trace:
        record_weights(weights[None], site)
    return trace[site]


def random_call(queries: int, keys: int, heads: int = 3, *, causal: bool = False) -> AttentionCall:
    with record() as trace:
        q, k = torch.randn(2, heads, queries, 8) * 2, torch.randn(2, heads, keys, 8)
        attend(q, k, k, site="encoder.0.self", causal=causal)
    return trace["encoder.0.self"]


def test_each_pattern_shows_in_its_own_measure() -> None:
    n = 8
    itself, uniform = torch.eye(n), torch.full((n, n), 1 / n)
    previous, following = torch.eye(n).roll(-1, dims=1), torch.eye(n).roll(1, dims=1)
    first = torch.zeros(n, n)
    first[:, 0] = 1.0
    call = call_of(torch.stack([itself, previous, following, first, uniform]))
    fingerprints = measure_layer(call, separators=(n - 1,)).fingerprints
    assert [fingerprint["diagonal"] for fingerprint in fingerprints] == pytest.approx([1, 0, 0, 1 / n, 1 / n])
    # The first token's row wraps round in `previous`, the last one's in `following`.
    assert [fingerprint["previous"] for fingerprint in fingerprints] == pytest.approx([0, 1, 0, 1 / (n - 1), 1 / n])
    assert [fingerprint["next"] for fingerprint in fingerprints] == pytest.approx([0, 0, 1, 0, 1 / n])
    assert [fingerprint["first"] for fingerprint in fingerprints] == pytest.approx([1 / n, 1 / n, 1 / n, 1, 1 / n])
    assert [fingerprint["separator"] for fingerprint in fingerprints] == pytest.approx([1 / n, 1 / n, 1 / n, 0, 1 / n])
    assert [fingerprint["entropy"] for fingerprint in fingerprints] == pytest.approx(
        [0, 0, 0, 0, math.log2(n)], abs=1e-6
    )
    assert all("information" not in fingerprint for fingerprint in fingerprints)


def test_information_is_what_a_query_tells_of_its_key() -> None:
    aligned, blind = torch.eye(4), torch.tensor([[1.0, 0, 0, 0]] * 4)
    fingerprints = measure_layer(call_of(torch.stack([aligned, blind])), on_itself=False).fingerprints
    assert [fingerprint["information"] for fingerprint in fingerprints] == pytest.approx([2.0, 0.0], abs=1e-6)
    assert fingerprints[0].keys() == {"entropy", "first", "information"}


@pytest.mark.parametrize("block", [1, 2**9, 2**18])
@pytest.mark.parametrize(("queries", "keys"), [(9, 9), (1, 1), (70, 70), (7, 5), (66, 70)])
def test_blocks_measure_what_whole_maps_do(
    block: int, queries: int, keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viz_core.maps.fingerprints._BLOCK_WEIGHTS", block)
    square = queries == keys
    call = random_call(queries, keys, causal=square)
    weights = call.weights()[1]
    measured = measure_layer(call, row=1, on_itself=square, separators=(0, keys - 1) if keys > 1 else ())

    def column(name: str) -> torch.Tensor:
        return torch.tensor([fingerprint[name] for fingerprint in measured.fingerprints])

    torch.testing.assert_close(measured.overview, call.overview(64)[1])
    torch.testing.assert_close(column("entropy"), attention_entropy(weights).mean(dim=-1), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(column("first"), key_mass(weights, [0]))
    if keys > 1:
        torch.testing.assert_close(column("separator"), key_mass(weights, [0, keys - 1]))
    if square:
        torch.testing.assert_close(column("diagonal"), diagonal_mass(weights))
    else:
        torch.testing.assert_close(column("information"), query_information(weights), atol=1e-5, rtol=1e-4)
    if square and queries > 1:
        torch.testing.assert_close(column("previous"), offset_mass(weights, -1))
        torch.testing.assert_close(column("next"), offset_mass(weights, 1))


@pytest.mark.parametrize("block", [1, 2**9, 2**18])
@pytest.mark.parametrize("special", [0, 1, 3])
def test_heads_over_a_picture_are_measured_by_how_far_they_look(
    block: int, special: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viz_core.maps.fingerprints._BLOCK_WEIGHTS", block)
    tokens = special + 4 * 5
    call = random_call(tokens, tokens)
    fingerprints = measure_layer(call, patches=Patches((4, 5), special)).fingerprints
    expected = mean_attention_distance(call.weights()[0], (4, 5), (1, 1), special)
    assert [fingerprint["distance"] for fingerprint in fingerprints] == pytest.approx(expected.tolist(), abs=1e-5)
    assert not any({"previous", "next"} & fingerprint.keys() for fingerprint in fingerprints)
    assert all(("first" in fingerprint) == (special > 0) for fingerprint in fingerprints)


def test_a_patch_that_looks_at_no_patch_has_no_distance() -> None:
    weights = torch.zeros(2, 5, 5)
    weights[0, :, 0] = 1  # everyone looks at the class token
    weights[1, 1:, 0] = 1
    weights[1, 1] = torch.tensor([0.5, 0, 0, 0, 0.5])  # one patch looks at the far corner
    fingerprints = measure_layer(call_of(weights), patches=Patches((2, 2), 1)).fingerprints
    assert [fingerprint["distance"] for fingerprint in fingerprints] == pytest.approx([0, math.sqrt(2)])


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="as many queries as keys, got 3 and 2"):
        measure_layer(random_call(3, 2))
    with pytest.raises(ValueError, match="1 special tokens and 2 x 2 patches, a side of 5"):
        measure_layer(random_call(4, 4), patches=Patches((2, 2), 1))


def test_offsets_key_mass_and_combinations_by_hand() -> None:
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]])
    assert offset_mass(weights, 0).item() == pytest.approx(1.3 / 3)
    assert offset_mass(weights, -1).item() == pytest.approx((0.1 + 0.4) / 2)
    assert offset_mass(weights, 2).item() == pytest.approx(0.2)
    assert key_mass(weights, [0, 2]).item() == pytest.approx((0.7 + 0.4 + 0.6) / 3)
    both = torch.stack([weights, weights.flip(0)])
    torch.testing.assert_close(combine_heads(both, "mean")[0], torch.tensor([0.45, 0.35, 0.2]))
    torch.testing.assert_close(combine_heads(both, "max")[0], torch.tensor([0.5, 0.4, 0.2]))


def test_wrong_arguments_are_refused_with_what_was_expected(shapes_unchecked: None) -> None:
    with pytest.raises(ValueError, match="more than 3, got shape"):
        offset_mass(torch.zeros(3, 3), 3)
    with pytest.raises(ValueError, match="keys: expected 0 to 2, got \\[3\\]"):
        key_mass(torch.zeros(2, 3), [3])
    with pytest.raises(ValueError, match="at least one query"):
        key_mass(torch.zeros(0, 3), [0])
    with pytest.raises(ValueError, match="with a head"):
        combine_heads(torch.zeros(0, 2, 2), "mean")
    with pytest.raises(ValueError, match="'mean' or 'max', got 'sum'"):
        combine_heads(torch.zeros(1, 2, 2), "sum")  # type: ignore[arg-type]


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (7, 5), (600, 600), (1100, 300)])
@pytest.mark.parametrize("head", [0, 2])
def test_one_wrong_row_of_one_head_is_noticed_wherever_it_is(queries: int, keys: int, head: int) -> None:
    weights = torch.rand(3, queries, keys).softmax(dim=-1)
    sound = call_of(weights, "decoder.0.cross")
    found = measure_layer(sound, on_itself=False).row_error
    assert found == pytest.approx(row_sum_error([sound]), abs=1e-7)
    assert found < 1e-5
    for row in {0, queries // 2, queries - 1}:
        broken = weights.clone()
        broken[head, row] *= 0.75
        assert measure_layer(call_of(broken, "decoder.0.cross"), on_itself=False).row_error == pytest.approx(0.25)
        broken[head, row, -1] = torch.nan
        assert math.isnan(row_sum_error([sound, call_of(broken), sound]))


def test_a_row_that_may_see_no_key_is_no_error() -> None:
    weights = torch.tensor([[[0.0, 0.0], [0.25, 0.75]], [[1.0, 0.0], [0.5, 0.5]]])
    assert measure_layer(call_of(weights)).row_error == 0.0


def test_a_key_that_is_named_twice_counts_once() -> None:
    assert key_mass(torch.full((2, 3), 1 / 3), [0, 0, 0, 0]).item() == pytest.approx(1 / 3)
