"""Layers and tokens to look into: fresh weights of known variance, trained ones cut anew, vectors in another width."""

from __future__ import annotations

import pytest
import torch

from viz_core.lessons.multi_head.steps import (
    fresh_layer,
    multi_head_steps,
    random_tokens,
    resize_width,
    trained_input,
    trained_layer,
)
from viz_core.pretrained import TextError, Translator
from viz_core.trace import record


@pytest.mark.parametrize(("width", "heads"), [(64, 8), (256, 4), (512, 64)])
@pytest.mark.parametrize("sharpness", [1.0, 3.0])
def test_fresh_scores_are_as_sharp_as_asked(width: int, heads: int, sharpness: float) -> None:
    steps = multi_head_steps(fresh_layer(width, heads, sharpness), random_tokens(64, width).X[None])
    assert float(steps.scores.std()) == pytest.approx(sharpness, rel=0.15)
    assert float(steps.values.std()) == pytest.approx(1, rel=0.1)


def test_the_seed_decides() -> None:
    same, again, other = (fresh_layer(8, 2, seed=seed).W_q.weight for seed in (1, 1, 2))
    assert torch.equal(same, again)
    assert not torch.equal(same, other)
    assert not torch.equal(random_tokens(4, 8, 1).X, random_tokens(4, 8, 2).X)
    assert random_tokens(3, 8).labels == ("0", "1", "2")


def test_another_width_keeps_products_on_average() -> None:
    X = torch.randn(40, 256)
    assert resize_width(X, 256) is X
    for width in (64, 512):
        Y = resize_width(X, width)
        assert Y.shape == (40, width)
        assert torch.equal(Y, resize_width(X, width))
        assert float(Y.std()) == pytest.approx(float(X.std()), rel=0.1)
        cosines = torch.nn.functional.cosine_similarity(Y[:20] + Y[20:], Y[:20], dim=1)
        assert float(cosines.mean()) == pytest.approx(0.5**0.5, abs=0.06)  # a vector and one half made of it


@pytest.mark.parametrize("block", [0, 1])
def test_a_trained_layer_sees_and_does_what_it_does_in_the_model(translator: Translator, block: int) -> None:
    text = "The cat is on the bed."
    tokens = trained_input(translator, text, block, 64)
    ids = translator.encode(text)
    assert tokens.labels == translator.readable_tokens(ids)
    with record() as trace:
        translator.model.encoder(torch.tensor([ids]))
    layer = trained_layer(translator, block, 4)
    steps = multi_head_steps(layer, tokens.X[None])
    torch.testing.assert_close(steps.weights, trace[f"encoder.{block}.self"].weights(), atol=1e-6, rtol=0)
    assert (steps.call.site, steps.call.layer) == (f"encoder.{block}.self", block)  # as the model calls it


def test_cut_anew_it_is_the_same_matrices(translator: Translator) -> None:
    two, eight = trained_layer(translator, 0, 2), trained_layer(translator, 0, 8)
    X = trained_input(translator, "She reads a book.", 0, 64).X[None]
    assert torch.equal(multi_head_steps(two, X).queries, multi_head_steps(eight, X).queries)
    assert not torch.allclose(two(X, X, X), eight(X, X, X))
    with pytest.raises(ValueError, match="num_heads: expected a divisor of num_hiddens=32, got 5"):
        trained_layer(translator, 0, 5)


def test_long_texts_are_cut_and_say_so(translator: Translator) -> None:
    tokens = trained_input(translator, "The cat is on the bed. " * 5, 0, 8)
    assert (len(tokens.labels), tokens.X.shape[0]) == (8, 8)
    assert tokens.total > 8


def test_wrong_arguments_say_what_was_expected(translator: Translator) -> None:
    with pytest.raises(TextError):
        trained_input(translator, "  ", 0, 8)
    with pytest.raises(ValueError, match="num_hiddens: expected at least 1, got 0"):
        fresh_layer(0, 1)
