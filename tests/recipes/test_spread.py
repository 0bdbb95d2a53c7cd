"""Penalties on attention by hand and in training, and a bound on scores."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from recipes.sentence_pairs import Pair
from recipes.spread import (
    alignment_penalty,
    clip_scores,
    guide_penalty,
    score_range,
    spread_penalty,
    token_penalty,
)
from tests.recipes.small_translator import CONFIG, build, train
from viz_core.models import EncoderDecoder
from viz_core.trace import record


def test_uniform_attention_costs_nothing_and_a_column_what_the_formula_says() -> None:
    visible = torch.ones(1, 4, 4, dtype=torch.bool)
    marks = torch.tensor([3])
    assert token_penalty(torch.full((1, 2, 4, 4), 0.25), visible, marks) == 0
    column = torch.zeros(1, 1, 4, 4)
    column[..., 3] = 1.0
    # on the mark 1 - (1/4 + 0.25) a query; the column 1 - (1/4 + 0.35)
    assert float(token_penalty(column, visible, marks)) == pytest.approx(0.5 + 0.4)
    assert float(token_penalty(column.flip(-1), visible, marks)) == pytest.approx(0.4)


def test_padding_and_queries_that_see_one_key_count_nowhere() -> None:
    causal = torch.ones(1, 3, 3, dtype=torch.bool).tril()
    weights = torch.tensor([[[[1.0, 0, 0], [1.0, 0, 0], [0.75, 0.125, 0.125]]]])
    # queries 2 and 3: 1 - (1/2 + 0.25) and 0.75 - (1/3 + 0.25); key 1: (1 + 0.75) / 2 - ((1/2 + 1/3) / 2 + 0.35)
    expected = (0.25 + 0.5 - 1 / 3) / 2 + 0.875 - 5 / 12 - 0.35
    assert float(token_penalty(weights, causal, torch.tensor([0]))) == pytest.approx(expected)
    padded = torch.zeros(1, 1, 5, 5)
    padded[..., :3, :3], padded[..., 3:, 0] = weights, 1.0
    room = torch.zeros(1, 5, 5, dtype=torch.bool)
    room[:, :3, :3] = causal
    assert float(token_penalty(padded, room, torch.tensor([0]))) == pytest.approx(expected)


def test_guide_penalty_by_hand() -> None:
    visible = torch.zeros(1, 4, 4, dtype=torch.bool)
    visible[:, :3, :3] = torch.ones(3, 3, dtype=torch.bool).tril()  # the fourth token is padding
    weights = torch.tensor([[1.0, 0, 0, 0], [0.25, 0.75, 0, 0], [0.1, 0.4, 0.5, 0], [0, 0, 0, 1]]).expand(1, 3, 4, 4)
    # the first query sees itself alone and counts nowhere; before: 0.6 - 0.25 and 0.6 - 0.4; itself: 0 and 0.1
    before, itself = (0.35 + 0.2) / 2, 0.1 / 2
    assert float(guide_penalty(weights, visible, "<.=")) == pytest.approx(before + itself)
    assert float(guide_penalty(weights, visible, ">..")) == 0  # a causal head sees no next token
    for signs in ("<.", "<.?"):
        with pytest.raises(ValueError, match="for each of 3 heads"):
            guide_penalty(weights, visible, signs)


def test_clipped_heads_have_the_range_and_others_stay() -> None:
    torch.manual_seed(0)
    model = build(50).eval()
    layer = model.encoder.blocks[0].attention  # type: ignore[union-attr]
    with torch.no_grad():
        layer.W_q.weight[: layer.W_q.weight.shape[0] // layer.num_heads] *= 20
    inputs = torch.randint(4, 50, (2, 6)), torch.randint(4, 50, (2, 5)), torch.tensor([6, 4])
    with record(differentiable=True) as trace:
        model(*inputs)
    before, limit = score_range(trace["encoder.0.self"].graph_weights), 3.0
    assert before[0] > limit > before[1]
    own = layer.W_q.weight.clone()
    clip_scores(model, trace, limit)
    with record(differentiable=True) as trace:
        model(*inputs)
    assert float(score_range(trace["encoder.0.self"].graph_weights)[0].detach()) == pytest.approx(limit, rel=0.02)
    rows = len(own) // layer.num_heads
    assert torch.equal(layer.W_q.weight[rows : 2 * rows], own[rows : 2 * rows])
    tokens = torch.ones(2, 5, dtype=torch.bool)
    assert float(spread_penalty(trace, inputs[2], tokens).detach()) > 0


def test_training_with_penalties_rests_less_on_marks_and_more_on_the_token_before(
    pairs: list[Pair], tmp_path: Path
) -> None:
    def found(**penalties: Any) -> tuple[float, float]:
        config = replace(CONFIG, epochs=3, max_score_range=20.0, **penalties)
        model = train(pairs, tmp_path / "-".join(penalties), config).model
        inputs = torch.randint(4, 60, (4, 9)), torch.randint(4, 60, (4, 8)), torch.tensor([9, 9, 9, 9])
        with record(differentiable=True) as trace:
            model(*inputs)
        before = trace["encoder.0.self"].graph_weights[:, 0].diagonal(-1, -2, -1).mean()
        return float(spread_penalty(trace, inputs[2], torch.ones(4, 8, dtype=torch.bool))), float(before)

    resting, before = found()
    assert found(spread_penalty=3.0)[0] < resting
    guides = dict.fromkeys(("encoder.0.self", "decoder.0.self"), "<...")
    assert found(guide_penalty=9.0, guides=guides)[1] > before


def test_alignment_penalty_by_hand() -> None:
    """Rows of three steps over two words, the third step padding in the second sentence."""
    written = torch.tensor([[[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]], [[0.8, 0.2], [0.0, 1.0], [0.0, 1.0]]])
    read = torch.tensor(
        [[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]], requires_grad=True
    )
    calls = [
        SimpleNamespace(site=site, graph_weights=torch.stack([torch.zeros_like(weights), weights], dim=1))
        for site, weights in (("decoder.2.cross", written), ("decoder.0.cross", read))
    ]
    real = torch.tensor([[True, True, True], [True, True, False]])
    found = alignment_penalty(cast(Any, calls), real, ("decoder.2.cross", 1), ("decoder.0.cross", 1))
    # what step i writes is read by step i + 1: (-log 0.75 - log 0.5) of the first sentence, -log 0.8 of the second
    assert float(found) == pytest.approx(-math.log(0.75 * 0.5 * 0.8) / 3)
    assert not found.requires_grad  # constants: the head that reads is not moved towards the one that learns


def test_training_can_align_a_head_and_hold_whole_numbers(pairs: list[Pair], tmp_path: Path) -> None:
    heads: dict[str, Any] = {"aligned": ("decoder.1.cross", 0), "reader": ("decoder.0.cross", 1)}

    def found(penalty: float) -> tuple[float, EncoderDecoder]:
        config = replace(CONFIG, epochs=3, rounded=True, align_penalty=penalty, **heads)
        model = train(pairs, tmp_path / str(penalty), config).model
        inputs = torch.randint(4, 60, (4, 9)), torch.randint(4, 60, (4, 8)), torch.tensor([9, 9, 9, 9])
        with record(differentiable=True) as trace:
            model(*inputs)
        return float(alignment_penalty(trace, torch.ones(4, 8, dtype=torch.bool), **heads).detach()), model

    def whole(row: Tensor) -> bool:
        return torch.equal(row.round(), row) and float(row.abs().max()) <= 127

    with pytest.raises(ValueError, match="expected both heads or none"):
        train(pairs, tmp_path / "one", replace(CONFIG, aligned=heads["aligned"]))
    free, _ = found(0.0)
    aligned, model = found(9.0)
    assert aligned < free
    for name, matrix in model.named_parameters():
        if matrix.dim() == 2:
            assert torch.equal(matrix.half().float(), matrix), name
            assert all(any(whole(row * 2.0**-e) for e in range(-24, 4)) for row in matrix), name
