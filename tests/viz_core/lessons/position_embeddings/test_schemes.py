"""The register of schemes: by loops, by their modules, and what every scheme must do."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from viz_core.lessons.position_embeddings.costs import Cost
from viz_core.lessons.position_embeddings.schemes import BY_NAME, SCHEMES
from viz_core.lessons.position_embeddings.setting import Setting, Sizes
from viz_core.positional import (
    AbsolutePositionEmbedding1d,
    LearnedPositionalEmbedding,
    RelativePositionEmbedding1d,
    RelativePositionEmbedding2d,
    T5RelativeBias,
    alibi_bias,
    apply_rotary,
    sinusoidal_table,
)

NAMES = [scheme.name for scheme in SCHEMES]


def setting(n: int = 6, d: int = 16, heads: int = 2, height: int = 1, **sizes: object) -> Setting:
    X = torch.randn(n, d, generator=torch.Generator().manual_seed(n))
    return Setting(X, Sizes(n, d, heads, height, n // height, **sizes))  # type: ignore[arg-type]


def test_the_register_has_every_scheme_once() -> None:
    assert NAMES == [
        "none", "sinusoidal", "learned", "absolute", "relative", "shaw", "relative-2d", "rotary", "alibi", "t5",
    ]  # fmt: skip


def test_without_positions_scores_are_scaled_products_of_projections() -> None:
    s = setting(n=3, d=4, heads=2)
    W_q, W_k = s.draw(0, 4, 4) / 2, s.draw(1, 4, 4) / 2
    scores = BY_NAME["none"].scores(s)
    for h in range(2):
        for i in range(3):
            for j in range(3):
                q, k = (s.X[i] @ W_q)[2 * h : 2 * h + 2], (s.X[j] @ W_k)[2 * h : 2 * h + 2]
                assert scores[h, i, j].item() == pytest.approx((q @ k).item() / math.sqrt(2), abs=1e-5)


def test_sinusoids_are_added_before_the_projections() -> None:
    s = setting()
    moved = Setting(s.X + sinusoidal_table(6, 16), s.sizes)
    torch.testing.assert_close(BY_NAME["sinusoidal"].output(s), BY_NAME["none"].output(moved))


def test_a_given_table_is_the_learned_one() -> None:
    s = setting()
    table = torch.randn(6, 16)
    with_table = Setting(s.X, s.sizes, table)
    expected = BY_NAME["none"].scores(Setting(s.X + table, s.sizes))
    torch.testing.assert_close(BY_NAME["learned"].scores(with_table), expected)


def test_rotary_turns_queries_and_keys_and_not_values() -> None:
    s = setting()
    q, k, v, _ = BY_NAME["none"].project(s)
    positions = torch.arange(6)
    expected = (apply_rotary(q, positions) @ apply_rotary(k, positions).transpose(-2, -1) / math.sqrt(8))[0]
    torch.testing.assert_close(BY_NAME["rotary"].scores(s), expected)
    torch.testing.assert_close(BY_NAME["rotary"].project(s)[2], v)


def test_alibi_adds_its_penalty_and_nothing_else() -> None:
    torch.testing.assert_close(BY_NAME["alibi"].position_scores(setting()), alibi_bias(2, 6, 6), atol=1e-5, rtol=0)


def test_t5_adds_one_number_for_each_offset() -> None:
    added = BY_NAME["t5"].position_scores(setting(n=8))
    for offset in range(-7, 8):
        diagonal = added.diagonal(offset, dim1=1, dim2=2)
        torch.testing.assert_close(diagonal, diagonal[:, :1].expand_as(diagonal), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_softmax_of_the_scores_and_output_their_mean_of_values(name: str) -> None:
    s, scheme = setting(), BY_NAME[name]
    weights = scheme.weights(s)
    torch.testing.assert_close(weights, scheme.scores(s).softmax(dim=-1))
    heads = weights @ scheme.project(s)[2][0]
    torch.testing.assert_close(scheme.output(s), heads.transpose(0, 1).reshape(6, 16))


@pytest.mark.parametrize("name", NAMES)
def test_maps_depend_on_the_seed_of_the_setting_alone(name: str) -> None:
    before = BY_NAME[name].scores(setting())
    torch.manual_seed(12345)
    torch.testing.assert_close(BY_NAME[name].scores(setting()), before, atol=0, rtol=0)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "none"])
def test_every_scheme_adds_scores_of_about_the_same_size(name: str) -> None:
    size = BY_NAME[name].position_scores(setting(n=12, d=256, heads=8)).std().item()
    assert 0.4 < size < 2


def test_tables_of_their_own_for_each_head_are_used() -> None:
    shared, own = setting().one_word(), setting(per_head=True).one_word()
    one = Setting(shared.X, shared.sizes)
    for name in ("relative", "shaw", "relative-2d"):
        assert not torch.allclose(BY_NAME[name].position_scores(one), BY_NAME[name].position_scores(own))


MODULES: dict[str, nn.Module] = {
    "learned": LearnedPositionalEmbedding(6, 16),
    "absolute": AbsolutePositionEmbedding1d(6, 8),
    "relative": RelativePositionEmbedding1d(6, 8),
    "shaw": RelativePositionEmbedding1d(6, 8, max_distance=4),
    "relative-2d": RelativePositionEmbedding2d(2, 3, 8),
    "t5": T5RelativeBias(2),
}


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_counted_as_in_the_modules(name: str) -> None:
    counted = BY_NAME[name].cost(Sizes(6, 16, 2, 2, 3)).parameters
    assert counted == sum(p.numel() for p in MODULES[name].parameters()) if name in MODULES else counted == 0


def test_parameters_of_tables_for_each_head() -> None:
    sizes = Sizes(6, 16, 2, 2, 3, per_head=True)
    for name, module in {
        "relative": RelativePositionEmbedding1d(6, 8, 2),
        "shaw": RelativePositionEmbedding1d(6, 8, 2, max_distance=4),
        "relative-2d": RelativePositionEmbedding2d(2, 3, 8, 2),
    }.items():
        assert BY_NAME[name].cost(sizes).parameters == sum(p.numel() for p in module.parameters())


def test_memory_by_hand() -> None:
    sizes = Sizes(6, 16, 2, 2, 3)
    assert BY_NAME["none"].cost(sizes) == Cost(0, 0, 0)
    assert BY_NAME["sinusoidal"].cost(sizes).stored_bytes == 4 * 6 * 16
    assert BY_NAME["rotary"].cost(sizes) == Cost(0, 6 * 8, 0)  # 6 positions, 4 pairs, a cosine and a sine
    assert BY_NAME["alibi"].cost(sizes) == Cost(0, 2, 2 * 6 * 6)
    assert BY_NAME["relative"].cost(sizes).computed_bytes == 4 * 2 * 6 * 11
    assert BY_NAME["relative-2d"].cost(sizes).computed == 2 * 6 * 3 + 2 * 6 * 5 + 2 * 6 * 6


@pytest.mark.parametrize("name", ["learned", "absolute", "relative", "relative-2d"])
@pytest.mark.usefixtures("shapes_unchecked")
def test_schemes_that_do_not_extend_refuse_a_longer_sequence(name: str) -> None:
    assert not BY_NAME[name].extends
    longer = torch.randn(1, 7, 16) if name == "learned" else torch.randn(1, 2, 7, 8)
    with pytest.raises(ValueError, match="expected"):
        MODULES[name](longer)


def test_schemes_that_extend_are_the_others() -> None:
    assert {s.name for s in SCHEMES if s.extends} == {"none", "sinusoidal", "shaw", "rotary", "alibi", "t5"}


@settings(max_examples=20)
@given(n=st.integers(1, 9), heads=st.sampled_from([1, 2, 4]), seed=st.integers(0, 99))
def test_every_scheme_takes_any_length(n: int, heads: int, seed: int) -> None:
    s = Setting(torch.randn(n, 16), Sizes(n, 16, heads, 1, n), seed=seed)
    for scheme in SCHEMES:
        assert scheme.scores(s).shape == (heads, n, n)
        assert scheme.scores(s).isfinite().all()


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((0, 16, 2, 1, 0), "num_tokens: expected at least 1, got 0"),
        ((6, 16, 3, 1, 6), "expected a multiple of 2"),
        ((6, 6, 3, 2, 2), "expected 6 cells, got 2 x 2"),
        ((6, 10, 2, 1, 6), "expected a multiple of 2"),
    ],
)
def test_impossible_sizes_are_refused(sizes: tuple[int, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Sizes(*sizes)


def test_tokens_and_table_must_fit_the_sizes() -> None:
    with pytest.raises(ValueError, match=r"X: expected shape \(5, 16\), got \(6, 16\)"):
        Setting(torch.zeros(6, 16), Sizes(5, 16, 2, 1, 5))
