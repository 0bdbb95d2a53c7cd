"""Alignment: whose word a row is taken for."""

from __future__ import annotations

import pytest
import torch

from viz_core.maps.alignments import alignment, best_aligner
from viz_core.trace import AttentionCall, record, record_weights


def call_of(weights: torch.Tensor, site: str = "decoder.0.cross") -> AttentionCall:
    with record() as trace:
        record_weights(weights[None], site)
    return trace[site]


def test_a_row_is_of_the_word_it_writes_or_of_the_one_it_has_read() -> None:
    # y_0 y_1 <eos> over x_0 x_1 <eos>: head 0 looks at the word it writes, head 1 at the one it has read
    writes = torch.tensor([[0.0, 0.8, 0.2], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
    reads = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.8, 0.2], [0.9, 0.1, 0.0]])
    call = call_of(torch.stack([writes, reads]))
    written, read = alignment(call, "written"), alignment(call, "read")
    assert (written.shape, read.shape) == ((2, 3, 3), (2, 2, 3))
    torch.testing.assert_close(written[0, :2], read[1])
    assert written[0].argmax(dim=-1).tolist() == [1, 0, 2]


def test_pieces_are_read_as_words() -> None:
    weights = torch.tensor([[[0.6, 0.2, 0.2], [0.2, 0.4, 0.4], [0.0, 0.0, 1.0]]])
    merged = alignment(call_of(weights), target_words=(0, 0, 1), source_words=(0, 1, 1))
    torch.testing.assert_close(merged, torch.tensor([[[0.4, 0.6], [0.0, 1.0]]]))
    read = alignment(call_of(weights), "read", target_words=(0, 0, 1), source_words=(0, 1, 1))
    torch.testing.assert_close(read, torch.tensor([[[0.1, 0.9]]]))  # rows 1 and 2 have read the pieces of word 0


def test_the_best_of_each_reading() -> None:
    errors = (((0.5, 0.9), (0.4, 0.2)), ((0.3, 0.8), (0.6, 0.7)))
    assert best_aligner(errors, "written") == (0.3, 1, 0)
    assert best_aligner(errors, "read") == (0.2, 0, 1)


def test_what_cannot_be_aligned_is_refused(shapes_unchecked: None) -> None:
    call = call_of(torch.eye(3)[None])
    with pytest.raises(ValueError, match="expected cross-attention, got AttentionCall.*encoder.0.self"):
        alignment(call_of(torch.eye(3)[None], "encoder.0.self"))
    with pytest.raises(ValueError, match="expected 'written' or 'read', got 'heard'"):
        alignment(call, "heard")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="words for 3 target and 3 source tokens, got 2 and 3"):
        alignment(call, target_words=(0, 1))
    with pytest.raises(ValueError, match="at least two steps, so that a word is read, got 1"):
        alignment(call_of(torch.ones(1, 1, 2) / 2), "read")
    with pytest.raises(ValueError, match="at least one head, got none"):
        best_aligner((), "read")
