"""Scoring functions on the same queries and keys: what they find, what they learn, what they cost."""

import math

import pytest
import torch

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


# (W_q q)^T (W_k k): the dot product of two projections, as in a head of a Transformer.


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
