"""While tests run, a wrong shape is an error wherever it passes."""

from __future__ import annotations

from dataclasses import dataclass

import beartype
import jaxtyping
import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float
from torch import Tensor

from tests import shape_checks
from viz_core.attention import masked_softmax
from viz_core.trace import attention_weights

ROWS, COLUMNS = torch.zeros(2, 3), torch.zeros(3, 2)


@shape_checks.jaxtyped(typechecker=beartype.beartype)
def first_of(one: Float[Tensor, "rows columns"], other: Float[Tensor, "rows columns"]) -> Float[Tensor, " rows"]:
    return one[:, 0] if one.any() else one[0]


def test_sizes_of_one_name_are_the_same() -> None:
    assert first_of(ROWS + 1, ROWS).shape == (2,)
    with pytest.raises(BeartypeCallHintViolation):
        first_of(ROWS, COLUMNS)
    with pytest.raises(BeartypeCallHintViolation):
        first_of(ROWS, other="text")
    with pytest.raises(BeartypeCallHintViolation):
        first_of(ROWS, ROWS)  # three columns are not two rows


def test_methods_properties_and_dataclasses() -> None:
    check = shape_checks.jaxtyped(typechecker=beartype.beartype)

    @check
    @dataclass
    class Pair:
        one: Float[Tensor, " n"]
        other: Float[Tensor, " n"]

        @check
        @property
        def wrong(self) -> int:
            return "text"  # type: ignore[return-value]

        @classmethod
        @check
        def twice(cls, one: Float[Tensor, " n"]) -> Pair:
            return cls(one, one)

    assert Pair.twice(ROWS[0]).other is not None
    with pytest.raises(BeartypeCallHintViolation):
        Pair.twice(ROWS)
    with pytest.raises(BeartypeCallHintViolation):
        Pair(ROWS[0], ROWS[:, 0])
    with pytest.raises(BeartypeCallHintViolation):
        _ = Pair(ROWS[0], ROWS[0]).wrong


def test_the_library_is_checked_at_every_door() -> None:
    with pytest.raises(TypeError):
        masked_softmax(ROWS)  # scores have three dimensions
    with pytest.raises(TypeError):
        attention_weights("queries", ROWS)
    assert not jaxtyping.config.jaxtyping_disable
