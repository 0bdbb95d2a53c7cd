"""A decoder step by step: causal, cached, selected."""

import pytest
import torch
from torch import nn

from tests.viz_core.models.transformer_cases import BLOCKS, FFN, HEADS, VOCAB, WIDTH, random_ids, random_model
from viz_core.models import (
    AddNorm,
    TransformerDecoder,
)
from viz_core.trace import record


@pytest.mark.parametrize("training", [False, True])
def test_no_step_sees_a_later_one(training: bool) -> None:
    model = random_model().train(training)  # without dropout, training and evaluation must agree
    source, target, lengths = random_ids(2, 5), random_ids(2, 6), torch.tensor([5, 3])
    before = model(source, target, lengths)
    for step in range(6):
        changed = target.clone()
        changed[:, step] = (changed[:, step] + 1) % VOCAB
        after = model(source, changed, lengths)
        torch.testing.assert_close(after[:, :step], before[:, :step], atol=0, rtol=0)
        assert (after[:, step] - before[:, step]).abs().amax(-1).min() > 1e-4
    with record() as trace:
        model(source, target, lengths)
    for i in range(BLOCKS):
        assert trace[f"decoder.{i}.self"].weights().triu(1).abs().max() == 0


def test_a_state_is_not_changed_by_the_steps_taken_from_it() -> None:
    model = random_model()
    state = model.decoder.init_state(model.encoder(random_ids(2, 5)))
    _, first = model.decoder(random_ids(2, 2), state)
    copies = [t.clone() for cache in first.caches for pair in cache for t in pair]
    one, _ = model.decoder(torch.zeros(2, 1, dtype=torch.long), first)
    model.decoder(torch.ones(2, 3, dtype=torch.long), first)
    again, _ = model.decoder(torch.zeros(2, 1, dtype=torch.long), first)
    assert state.caches == (None, None)
    assert torch.equal(one, again)
    assert all(torch.equal(a, b) for a, b in zip(copies, [t for c in first.caches for p in c for t in p], strict=True))


@pytest.mark.parametrize("with_lengths", [False, True])
def test_select_keeps_and_repeats_rows(with_lengths: bool) -> None:
    model = random_model()
    source, target = random_ids(3, 5), random_ids(3, 4)
    lengths = torch.tensor([5, 2, 4]) if with_lengths else None
    rows = torch.tensor([2, 0, 0])
    state = model.decoder.init_state(model.encoder(source, lengths), lengths)
    fresh = state.select(rows)
    assert fresh.caches == (None, None)
    _, state = model.decoder(target[:, :3], state)
    logits, _ = model.decoder(target[rows, 3:], state.select(rows))
    picked = None if lengths is None else lengths[rows]
    expected = model(source[rows], target[rows], picked)[:, 3:]
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=0)
    from_fresh, _ = model.decoder(target[rows], fresh)
    torch.testing.assert_close(from_fresh[:, 3:], expected, atol=2e-5, rtol=0)


def test_a_decoder_without_blocks_has_no_steps() -> None:
    decoder = TransformerDecoder(VOCAB, WIDTH, FFN, HEADS, 0, 0.0)
    state = decoder.init_state(torch.zeros(1, 2, WIDTH))
    assert state.num_steps == 0


def test_more_steps_than_positions_are_refused() -> None:
    decoder = TransformerDecoder(VOCAB, 4, 4, 1, 1, 0.0).eval()
    state = decoder.init_state(torch.zeros(1, 2, 4))
    with torch.no_grad():
        _, state = decoder(torch.zeros(1, 999, dtype=torch.long), state)
        _, state = decoder(torch.zeros(1, 1, dtype=torch.long), state)
        with pytest.raises(ValueError, match="at most max_len=1000 positions, got 1001"):
            decoder(torch.zeros(1, 1, dtype=torch.long), state)


def test_add_norm_drops_the_branch_and_not_the_residual() -> None:
    layer, X = AddNorm(4, 0.5), torch.randn(100, 4)
    torch.testing.assert_close(layer(X, torch.zeros(100, 4)), nn.functional.layer_norm(X, (4,)))
    assert not torch.equal(layer(X, X), layer(X, X))


def test_add_norm_takes_the_books_list_of_sizes() -> None:
    X = torch.randn(2, 3, 4)
    layer = AddNorm([3, 4], 0.5).eval()
    torch.testing.assert_close(layer(X, X), nn.functional.layer_norm(2 * X, (3, 4)))


@pytest.mark.usefixtures("shapes_unchecked")
def test_add_norm_refuses_two_shapes() -> None:
    with pytest.raises(ValueError, match=r"expected X and Y of one shape, got \(2, 4\) and \(1, 4\)"):
        AddNorm(4, 0.0)(torch.zeros(2, 4), torch.zeros(1, 4))
