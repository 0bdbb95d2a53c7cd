"""What cannot be measured, aligned or fitted, and the words that say so."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.viz_core.maps.test_measures import call_of, proteins, random_call
from viz_core.maps.alignments import alignment, best_aligner, token_starts, warping_path
from viz_core.maps.contacts import fit_contacts
from viz_core.maps.fingerprints import measure_layer
from viz_core.maps.measures import (
    Patches,
    attention_entropy,
    combine_heads,
    diagonal_mass,
    induction_mass,
    key_mass,
    mean_attention_distance,
    offset_mass,
    target_mass,
    total_variation,
    uniform_attention_distance,
)
from viz_core.maps.register import RoleTargets, role_masses
from viz_core.maps.rollout import attention_rollout, gradient_relevance, relevance_maps
from viz_core.maps.word_maps import merge_words
from viz_core.models.vit import ViT
from viz_core.trace import record

zeros = torch.zeros
EVEN = torch.full((1, 2, 2), 0.5)
CROSS = call_of(torch.eye(3)[None], "decoder.0.cross")
NO_TARGET = zeros(2, 3) > 0

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: alignment(call_of(torch.eye(3)[None])), "expected cross-attention, got AttentionCall"),
    (lambda: alignment(CROSS, "heard"), "expected 'written' or 'read', got 'heard'"),  # type: ignore[arg-type]
    (lambda: alignment(CROSS, target_words=(0, 1)), "words for 3 target and 3 source tokens, got 2 and 3"),
    (
        lambda: alignment(call_of(torch.ones(1, 1, 2) / 2, "decoder.0.cross"), "read"),
        "at least two steps, so that a word is read, got 1",
    ),
    (lambda: best_aligner((), "read"), "at least one head, got none"),
    (lambda: warping_path(np.zeros((0, 3))), "expected at least one cell and no NaN"),
    (lambda: warping_path(np.full((2, 2), np.nan)), "expected at least one cell and no NaN"),
    *((lambda shape=shape: token_starts(zeros(shape), 7), "odd width") for shape in ((0, 2, 3), (1, 0, 3), (1, 2, 0))),
    (lambda: token_starts(zeros(1, 2, 3), 4), "odd width"),
    (lambda: merge_words(zeros(2, 2), (0,), (0, 1)), "words for (2, 2) queries and keys, got 1 and 2"),
    (lambda: merge_words(zeros(2, 2), (0, 2), (0, 1)), "query_words: expected numbers that count up from 0, got"),
    (lambda: attention_entropy(torch.tensor([[1.5, -0.5]])), "none below 0, got -0.5"),
    *((lambda shape=shape: diagonal_mass(zeros(shape)), "as many queries as keys") for shape in ((3, 4), (0, 0))),
    (lambda: induction_mass(torch.eye(3), "abc"), "that all differ"),
    (lambda: induction_mass(torch.eye(3), "ab"), "expected 2 queries and keys"),
    (lambda: target_mass(zeros(2, 3), NO_TARGET), "a query that has one, got none"),
    (lambda: target_mass(zeros(2, 3), zeros(3, 3) == 0), "expected (3, 3) as the targets are, got (2, 3)"),
    (lambda: total_variation(EVEN, zeros(1, 2, 3)), "two maps of one size, got (1, 2, 2) and (1, 2, 3)"),
    (lambda: offset_mass(zeros(3, 3), 3), "more than 3, got shape"),
    (lambda: key_mass(zeros(2, 3), [3]), "keys: expected 0 to 2, got [3]"),
    (lambda: key_mass(zeros(0, 3), [0]), "at least one query"),
    (lambda: combine_heads(zeros(0, 2, 2), "mean"), "with a head"),
    (lambda: combine_heads(EVEN, "sum"), "'mean' or 'max', got 'sum'"),  # type: ignore[arg-type]
    (lambda: measure_layer(random_call(3, 2)), "as many queries as keys, got 3 and 2"),
    (
        lambda: measure_layer(random_call(4, 4), patches=Patches((2, 2), 1)),
        "1 special tokens and 2 x 2 patches, a side of 5",
    ),
    (lambda: mean_attention_distance(zeros(4, 4), (2, 2), (1, 1)), "a side of 5, got maps of 4 x 4"),
    (lambda: uniform_attention_distance((0, 2), (1, 1)), "at least 1 x 1"),
    (lambda: RoleTargets.of(["a"], ["a", "b"], on_itself=True), "got 1 and 2"),
    (lambda: RoleTargets.of([], [], on_itself=False), "got 0 and 0"),
    (
        lambda: role_masses(zeros(1, 3, 3), RoleTargets.of([*"ab"], [*"ab"], on_itself=True)),
        "maps of (2, 2) as the targets are, got (3, 3)",
    ),
    (lambda: attention_rollout([]), "expected at least one"),
    (lambda: attention_rollout([zeros(1, 2, 2), zeros(1, 3, 3)]), "of one n, got shapes"),
    (lambda: attention_rollout([zeros(1, 2, 3)]), "of one n, got shapes"),
    (lambda: attention_rollout([EVEN], "median"), "head_fusion: expected 'mean', 'max' or 'min', got 'median'"),  # type: ignore[arg-type]
    (lambda: attention_rollout([EVEN], discard_ratio=-0.1), "discard_ratio: expected at least 0 and below 1"),
    (lambda: attention_rollout([EVEN], discard_ratio=1.0), "discard_ratio: expected at least 0 and below 1"),
    (lambda: gradient_relevance([], []), "expected weights and gradients of one or more layers"),
    (lambda: gradient_relevance([EVEN], []), "expected weights and gradients"),
    (lambda: fit_contacts(*proteins(), penalty=0.0), "penalty"),
    (lambda: fit_contacts(proteins()[0], proteins()[1][:1], penalty=1.0), "each protein's features"),
    (lambda: fit_contacts(proteins()[0][:1], [zeros(30, 30) > 0], penalty=1.0), "got 0 of"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
@pytest.mark.usefixtures("shapes_unchecked")
def test_what_cannot_be_computed_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_relevance_needs_a_graph_and_one_picture(model: ViT, picture: Tensor) -> None:
    for differentiable, pictures, gradients, message in (
        (False, 1, True, "'encoder.0.self': expected a call recorded by record"),
        (True, 1, False, "expected a call recorded by"),
        (True, 2, True, "expected a batch of one, got 2"),
    ):
        with torch.set_grad_enabled(gradients), record(differentiable=differentiable) as trace:
            logits = model(picture.expand(pictures, -1, -1, -1))
        with pytest.raises(ValueError, match=message):
            relevance_maps(trace, logits[0, 0])
