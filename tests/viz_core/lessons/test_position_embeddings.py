"""Parts of position schemes, and order, against loops."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from viz_core.lessons.position_embeddings import scheme_parts as proofs
from viz_core.lessons.position_embeddings.order import (
    SharedLayer,
    offset_spread,
    order_changes,
    picture,
    picture_tokens,
    shipped_position_tables,
)
from viz_core.lessons.position_embeddings.scheme_parts import (
    grid_terms,
    mean_size,
    rotary_products,
    rotary_shift_residual,
)
from viz_core.positional import (
    BY_NAME,
    SCHEMES,
    RelativePositionEmbedding2d,
    apply_rotary,
    sinusoidal_table,
    t5_relative_position_bucket,
)
from viz_core.positional.entry import SchemeEntry, SchemeSizes
from viz_core.positional.t5 import t5_bucket_ranges
from viz_core.pretrained.token_vectors import shuffled_order


@settings(max_examples=8)
@given(n=st.integers(2, 12), heads=st.sampled_from([1, 2, 4]), seed=st.integers(0, 99))
def test_order_matters_with_every_scheme_and_without_positions_it_does_not(n: int, heads: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    s = SharedLayer(torch.randn(n, 32, generator=generator), SchemeSizes(n, 32, heads, 1, n), seed=seed)
    order = shuffled_order([str(i) for i in range(n)], seed)
    for scheme in SCHEMES:
        change = order_changes(scheme, s, order).max()
        ordered = bool((order != torch.arange(n)).any()) and scheme.depends_on != "nothing"
        backwards = scheme.depends_on == "distance" and torch.equal(order, torch.arange(n).flip(0))
        assert change > 1e-3 if ordered and not backwards else change < 1e-5, scheme.name


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_an_offset_has_one_score_where_positions_count_by_offset_alone(scheme: SchemeEntry) -> None:
    s = SharedLayer(torch.randn(9, 32), SchemeSizes(9, 32, 2, 1, 9)).one_word()
    spread = offset_spread(s.scores(scheme))
    assert spread > 0.1 if scheme.depends_on == "position" else spread < 1e-5  # a grid of one row is a line


def test_patches_are_row_major_and_of_unit_variance() -> None:
    tokens = picture_tokens(3, 5, 256)
    assert tokens.labels[:6] == ("1,1", "1,2", "1,3", "1,4", "1,5", "2,1")
    assert 0.5 < tokens.X.var().item() < 2
    pixels = torch.from_numpy(picture(3, 5))
    projection = torch.randn(64, 256, generator=torch.Generator().manual_seed(0)) / 8
    patch = (pixels[8:16, 16:24].flatten() - pixels.mean()) / pixels.std()
    torch.testing.assert_close(tokens.X[1 * 5 + 2], patch @ projection, atol=1e-4, rtol=1e-4)


def write_model(folder: Path, name: str, tensors: dict[str, torch.Tensor] | bytes) -> None:
    (folder / name).mkdir()
    card = {"title": name, "task": "x", "licence": "x"}
    (folder / name / "config.json").write_text(json.dumps(card), encoding="utf-8")
    path = folder / name / "model.safetensors"
    if isinstance(tensors, bytes):
        path.write_bytes(tensors)
    else:
        save_file(tensors, str(path))


def test_the_table_of_a_shipped_picture_model_is_found(tmp_path: Path) -> None:
    assert shipped_position_tables(tmp_path) == []
    write_model(tmp_path, "a-translator", {"weight": torch.zeros(2)})
    write_model(tmp_path, "b-broken", b"cut short")
    assert shipped_position_tables(tmp_path) == []
    table = torch.randn(1, 50, 8)
    write_model(tmp_path, "vit", {"pos_embedding": table.half()})
    (found,) = shipped_position_tables(tmp_path)
    assert found.card.name == "vit"
    torch.testing.assert_close(found.positions, table[0, 1:].half().float())


def doubles(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=30)
@given(d=st.sampled_from([2, 4, 16, 64]), base=st.sampled_from([2.0, 100.0, 10000.0]), seed=st.integers(0, 999))
def test_products_know_only_offsets(d: int, base: float, seed: int) -> None:
    q, k = doubles(2, d, seed=seed)
    offsets = torch.arange(-50, 51)
    assert rotary_shift_residual(q, k, offsets, base) < 1e-9
    one = rotary_products(q, k, torch.tensor([5]), base, start=3.0).item()
    turned = [apply_rotary(x.reshape(1, 1, 1, d), torch.tensor([p]), base).flatten() for x, p in ((q, 3), (k, 8))]
    assert one == pytest.approx((turned[0] @ turned[1]).item())


@pytest.mark.parametrize("num_heads", [None, 2])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 3), (4, 2)])
def test_grid_terms_add_up_to_the_layer(height: int, width: int, num_heads: int | None) -> None:
    module = RelativePositionEmbedding2d(height, width, 8, num_heads)
    q = torch.randn(2, height * width, 8)
    whole = module(q[None])[0].detach() * 8**-0.5
    for head in range(2):
        for row in range(height):
            for column in range(width):
                terms = grid_terms(q, module, row, column, head)
                expected = whole[head, row * width + column].reshape(height, width)
                torch.testing.assert_close(terms.total, expected, atol=1e-5, rtol=0)
                for i in range(height):
                    for j in range(width):
                        assert (terms.row_offsets[i, j], terms.column_offsets[i, j]) == (i - row, j - column)
                assert (terms.row_term == terms.row_term[:, :1]).all()
                assert (terms.column_term == terms.column_term[:1]).all()


def test_t5_ranges_as_published() -> None:
    expected = [*((i, i, i) for i in range(8)), (8, 8, 11), (9, 12, 15), (10, 16, 22), (11, 23, 31), (12, 32, 45)]
    assert t5_bucket_ranges() == (*expected, (13, 46, 63), (14, 64, 90), (15, 91, None))


@pytest.mark.parametrize(
    ("bidirectional", "num_buckets", "max_distance"), [(True, 8, 64), (False, 64, 64), (True, 64, 256)]
)
def test_every_distance_lies_in_the_range_of_its_bucket(
    bidirectional: bool, num_buckets: int, max_distance: int
) -> None:
    distances = torch.arange(2 * max_distance + 50)
    buckets = t5_relative_position_bucket(-distances, bidirectional, num_buckets, max_distance).tolist()
    ranges = {bucket: (low, high) for bucket, low, high in t5_bucket_ranges(bidirectional, num_buckets, max_distance)}
    for distance, bucket in enumerate(buckets):
        low, high = ranges[bucket]
        assert low <= distance <= (distance if high is None else high)


def test_residuals_see_what_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proofs.row_spread(torch.tensor([[[1.0, 2], [1, 5]]])) == 3
    assert offset_spread(torch.tensor([[[5.0, 1, 7], [2, 6, 1], [9, 4, 5]]])) == 2  # at offset -1: 2 and 4
    assert mean_size(torch.tensor([-8.0, 3, 1, -5]), torch.tensor([-2, 1, 0, 3]), 2, 3) == 6.5
    bias = torch.tensor([[[0.0, 1, 2, 2.5], [7, 0, 1, 2], [7, 7, 0, 1], [6, 7, 7, 0]]])
    assert proofs.clipping_spread(bias, 2) == 1  # the last row: 6 and 7 at distances 3 and 2
    assert proofs.clipping_spread(bias, 9) == 0
    monkeypatch.setattr(proofs, "PUBLISHED_BUCKETS", (0, 2, *range(2, 16)))
    assert proofs.bucket_errors() > 1


NAMES = [scheme.name for scheme in SCHEMES]


def shared_layer(n: int = 6, d: int = 16, heads: int = 2, height: int = 1, **sizes: object) -> SharedLayer:
    X = torch.randn(n, d, generator=torch.Generator().manual_seed(n))
    return SharedLayer(X, SchemeSizes(n, d, heads, height, n // height, **sizes))  # type: ignore[arg-type]


def test_sinusoids_are_added_before_the_projections() -> None:
    s = shared_layer()
    positioned = SharedLayer(s.X + sinusoidal_table(6, 16), s.sizes)
    torch.testing.assert_close(s.output(BY_NAME["sinusoidal"]), positioned.output(BY_NAME["none"]))


def test_rotary_rotates_queries_and_keys_and_not_values() -> None:
    s = shared_layer()
    q, k, v, _ = s.project(BY_NAME["none"])
    positions = torch.arange(6)
    expected = (apply_rotary(q, positions) @ apply_rotary(k, positions).transpose(-2, -1) / math.sqrt(8))[0]
    torch.testing.assert_close(s.scores(BY_NAME["rotary"]), expected)
    torch.testing.assert_close(s.project(BY_NAME["rotary"])[2], v)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_softmax_of_the_scores_and_output_their_mean_of_values(name: str) -> None:
    s, scheme = shared_layer(), BY_NAME[name]
    weights = s.weights(scheme)
    torch.testing.assert_close(weights, s.scores(scheme).softmax(dim=-1))
    heads = weights @ s.project(scheme)[2][0]
    torch.testing.assert_close(s.output(scheme), heads.transpose(0, 1).reshape(6, 16))
