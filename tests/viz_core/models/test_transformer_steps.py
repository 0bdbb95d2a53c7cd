"""A decoder step by step: causal, cached, selected."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.viz_core.models.transformer_cases import BLOCKS, FFN, HEADS, VOCAB, WIDTH, random_ids, random_model
from viz_core.models import (
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


@pytest.mark.parametrize("chunks", [[1] * 7, [3, 4], [2, 1, 4], [6, 1], [1, 6]])
def test_cached_steps_equal_one_pass(chunks: list[int]) -> None:
    model = random_model()
    source, target, lengths = random_ids(2, 5), random_ids(2, 7), torch.tensor([5, 2])
    expected = model(source, target, lengths)
    state = model.decoder.init_state(model.encoder(source, lengths), lengths)
    parts, taken = [], 0
    for chunk in target.split(chunks, dim=1):
        assert state.num_steps == taken
        logits, state = model.decoder(chunk, state)
        parts.append(logits)
        taken += chunk.shape[1]
    assert state.num_steps == 7
    torch.testing.assert_close(torch.cat(parts, dim=1), expected, atol=2e-5, rtol=0)


def test_cached_steps_record_the_rows_of_the_whole_map() -> None:
    model = random_model()
    source, target = random_ids(1, 5), random_ids(1, 4)
    with record() as whole:
        model(source, target)
    state = model.decoder.init_state(model.encoder(source))
    with record() as steps:
        for i in range(4):
            _, state = model.decoder(target[:, i : i + 1], state)
    for kind in ("self", "cross"):
        full = whole[f"decoder.1.{kind}"].weights()
        for i in range(4):
            row = steps[f"decoder.1.{kind}" + (f"@{i + 1}" if i else "")].weights()
            torch.testing.assert_close(row, full[:, :, i : i + 1, : row.shape[-1]], atol=1e-5, rtol=0)


def test_positions_go_on_where_the_cache_ends() -> None:
    """A decoder whose blocks are silent shows its embedding and position alone."""
    decoder = TransformerDecoder(VOCAB, WIDTH, FFN, HEADS, 1, 0.0).eval()
    state = decoder.init_state(torch.randn(1, 3, WIDTH))
    token = torch.tensor([[4]])
    _, state = decoder(torch.tensor([[1, 2, 3]]), state)
    seen: list[Tensor] = []
    decoder.blks.block0.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    decoder(token, state)
    expected = decoder.embedding.weight[4] * math.sqrt(WIDTH) + decoder.pos_encoding.P[0, 3]
    torch.testing.assert_close(seen[0][0, 0], expected)


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
