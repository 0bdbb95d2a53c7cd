"""Scoring functions on the same queries and keys: what they find, what they learn, what they cost."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from viz_core.attention.scores.function import ScoreCost, ScoreWidths, ScoringFunction
from viz_core.attention.scores.register import BY_NAME, FUNCTIONS
from viz_core.lessons.scoring_functions.score_contest import (
    SCENES,
    book_example_error,
    contest,
    general_identity_error,
    general_projection_error,
    last_layer_input,
    the_books,
    turned,
    widths,
    word_scores,
)
from viz_core.pretrained import load_translator
from viz_core.pretrained.samples import sentences
from viz_core.pretrained.token_vectors import sentence_tokens


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_dot_products_find_what_is_alike_and_lose_what_was_turned(seed: int) -> None:
    alike, lost = (contest(SCENES[name](seed), 8, 0) for name in ("alike", "turned"))
    assert alike["dot"].found == alike["scaled"].found == 1.0
    assert lost["dot"].found < 0.7
    assert lost["dot"].found == lost["scaled"].found


@pytest.mark.parametrize("name", ["alike", "turned", "widths"])
@pytest.mark.parametrize("seed", [0, 1])
def test_general_and_additive_learn_what_belongs_together(name: str, seed: int) -> None:
    entries = contest(SCENES[name](seed), 16, 300, seed)
    for learned in ("general", "additive"):
        assert entries[learned].found == 1.0
        weights = entries[learned].weights
        assert weights is not None
        assert float(weights[0].diagonal().mean()) > 0.6


def test_scaled_is_dot_divided_by_the_root() -> None:
    entries = contest(SCENES["alike"](0), 4, 0)
    dot, scaled = entries["dot"].scores, entries["scaled"].scores
    assert dot is not None
    assert scaled is not None
    torch.testing.assert_close(scaled * math.sqrt(8), dot)


def test_dot_products_are_not_defined_for_two_widths() -> None:
    entries = contest(widths(), 4, 0)
    assert list(entries) == list(BY_NAME)
    undefined = {name for name, entry in entries.items() if entry.scores is None}
    assert undefined == {function.name for function in FUNCTIONS if function.one_width} >= {"dot", "scaled"}
    assert math.isnan(entries["dot"].found)


def test_the_books_keys_are_alike_so_every_score_spreads_evenly() -> None:
    entries = contest(the_books(), 8, 0)
    expected = torch.tensor([[[0.5] * 2 + [0.0] * 8], [[1 / 6] * 6 + [0.0] * 4]])
    for name in ("general", "additive"):
        weights = entries[name].weights
        assert weights is not None
        torch.testing.assert_close(weights, expected)
        assert math.isnan(entries[name].found)
    assert book_example_error() < 1e-5


def test_costs_counted_by_hand() -> None:
    """6 queries of width 20, 6 keys of width 2, 3 hidden units."""
    entries = contest(widths(), 3, 0)
    assert (entries["general"].parameters, entries["general"].multiplications) == (40, 6 * 40 + 36 * 2)
    assert (entries["additive"].parameters, entries["additive"].multiplications) == (69, 3 * (120 + 12 + 36))
    same = contest(SCENES["alike"](0), 3, 0)
    assert (same["dot"].parameters, same["dot"].multiplications) == (0, 36 * 8)
    assert (same["scaled"].parameters, same["scaled"].multiplications) == (0, 36 * 9)


@pytest.mark.parametrize("name", list(SCENES))
def test_residuals_are_rounding(name: str) -> None:
    scene = SCENES[name](3)
    assert general_projection_error(scene) < 1e-4
    if len(set(scene.widths)) == 1:
        assert general_identity_error(scene) < 1e-5


def test_residuals_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product that forgets its matrix is found."""
    monkeypatch.setattr(
        "viz_core.lessons.scoring_functions.score_contest.general_scores",
        lambda queries, keys, _: 0 * queries @ keys.mT,
    )
    assert general_identity_error(turned()) > 1.0


def test_the_same_numbers_again_whatever_torchs_own_seed() -> None:
    first = contest(turned(), 4, 5)["additive"].scores
    torch.manual_seed(99)
    again = contest(turned(), 4, 5)["additive"].scores
    assert first is not None
    assert again is not None
    assert torch.equal(first, again)


def test_learning_changes_no_scene() -> None:
    scene = turned()
    queries, keys = scene.queries.clone(), scene.keys.clone()
    contest(scene, 4, 5)
    assert torch.equal(scene.queries, queries)
    assert torch.equal(scene.keys, keys)


def test_refuses_what_cannot_be_learned() -> None:
    with pytest.raises(ValueError, match="num_hiddens: expected at least 1, got 0"):
        contest(turned(), 0, 0)


def _two_projections(given: ScoreWidths, seed: int) -> nn.ParameterList:
    generator = torch.Generator().manual_seed(seed)
    return nn.ParameterList([torch.randn(given.num_hiddens, d, generator=generator) for d in given[:2]])


# (W_q q)^T (W_k k): the dot product of two projections, as in a head of a Transformer.
PROJECTED: ScoringFunction[nn.ParameterList] = ScoringFunction(
    "projected",
    99,
    r"(W_q q)^\top W_k k",
    lambda W, queries, keys: queries @ W[0].T @ (keys @ W[1].T).mT,
    lambda s: ScoreCost(
        s.widths.num_hiddens * (s.widths.query_size + s.widths.key_size),
        s.batch * s.widths.num_hiddens * (s.queries * (s.widths.query_size + s.keys) + s.keys * s.widths.key_size),
    ),
    _two_projections,
)


def test_one_more_function_is_one_entry() -> None:
    """6 queries of width 20, 6 keys of width 2, 3 hidden units."""
    given = widths()
    entries = contest(given, 3, 0, seed=5, functions=(*FUNCTIONS, PROJECTED))
    assert list(entries) == [*BY_NAME, "projected"]
    added = entries["projected"]
    W_q, W_k = (W.detach() for W in _two_projections(ScoreWidths(20, 2, 3), 5))
    assert added.scores is not None
    for i, q in enumerate(given.queries[0]):
        for j, k in enumerate(given.keys[0]):
            assert float(added.scores[0, i, j]) == pytest.approx(float((W_q @ q) @ (W_k @ k)), rel=1e-4, abs=1e-4)
    assert (added.parameters, added.multiplications) == (3 * 22, 3 * (120 + 12 + 36))
    before = contest(given, 3, 0, seed=5)
    assert all(entries[name].multiplications == entry.multiplications for name, entry in before.items())


def test_one_more_function_learns_like_the_others_and_may_ask_for_one_width() -> None:
    entries = contest(turned(), 8, 300, functions=(*FUNCTIONS, PROJECTED))
    assert entries["projected"].found == 1.0
    narrow = contest(widths(), 8, 0, functions=[replace(PROJECTED, one_width=True)])
    assert narrow["projected"].scores is None
    assert math.isnan(narrow["projected"].found)


def test_the_weights_are_those_of_the_encoders_last_layer() -> None:
    model = load_translator("transformer-en-fr", "cpu")
    text = next(sample.english for sample in sentences() if sample.id == "cat")
    encoder = model.model.encoder
    tokens = sentence_tokens(text, 24, 256, model, ended=True)
    translation = model.translate(text)
    assert tokens.labels == translation.source_tokens
    X = last_layer_input(encoder, tokens.X)
    for head in range(8):
        made = word_scores(encoder.blocks[-1].attention, X, head)
        recorded = translation.trace["encoder.2.self"].weights(head=head)[0]
        for query in range(len(tokens.labels)):
            assert made.weights(query).numpy() == pytest.approx(recorded[query].numpy(), abs=1e-5)


def test_no_end_mark_follows_what_says_nothing() -> None:
    model = load_translator("transformer-en-fr", "cpu")
    assert sentence_tokens(" ", 24, 256, model, ended=True).labels == ()
