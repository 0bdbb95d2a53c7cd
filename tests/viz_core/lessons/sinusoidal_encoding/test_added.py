"""Embedding plus position."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from viz_core.lessons.sinusoidal_encoding.added import add_positions, find_twins
from viz_core.positional import sinusoidal_table
from viz_core.pretrained import Translator


def test_the_sum_is_what_the_encoder_computes(translator: Translator) -> None:
    ids = torch.tensor([translator.encode("The cat is on the bed.")])
    encoder = translator.model.encoder
    added = add_positions(encoder.embed(ids)[0])
    torch.testing.assert_close(added.total, encoder.pos_encoding(encoder.embed(ids))[0])
    assert torch.equal(added.position, sinusoidal_table(*added.total.shape))


def test_the_first_token_that_comes_again_is_found() -> None:
    X = torch.nn.Embedding(4, 8)(torch.tensor([3, 1, 2, 1, 3])).detach()
    added = add_positions(X)
    twins = find_twins([3, 1, 2, 1, 3], added)
    assert twins is not None
    assert (twins.first, twins.second) == (1, 3)
    assert twins.before == pytest.approx(1.0)
    assert twins.after == pytest.approx(float(F.cosine_similarity(added.total[1], added.total[3], dim=0)))
    assert twins.after < 0.999


def test_without_a_repeated_token_there_are_no_twins() -> None:
    assert find_twins([1, 2, 3], add_positions(torch.ones(3, 4))) is None
