"""A stream through one rule: the map, the states and the outputs, intact or without the removal."""

from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from viz_core.attention.linear import LinearOperator

CHUNK = 4


@dataclass(frozen=True, eq=False)
class Forms:
    """The same layer as a matrix and as a state."""

    map: Float[Tensor, "n n"]
    states: Float[Tensor, "n d v"]
    outputs: Float[Tensor, "n v"]
    map_error: float
    chunk_error: float
    later_weight: float


def without_removal(operator: LinearOperator) -> LinearOperator:
    """Return the operator that writes b v instead of b (v - what the state returned)."""
    return replace(operator, erases=False)


def all_forms(operator: LinearOperator, values: Float[Tensor, "n v"], broken: bool = False) -> Forms:
    """Return every form of a layer of one head, and how far they are apart, relative to the outputs' norm.

    Args:
        broken: whether the map leaves out the removal, which the recurrence keeps.
    """
    all_values = values[None, None]
    weights = (without_removal(operator) if broken else operator).map()
    outputs = operator.recurrent(all_values)
    return Forms(
        weights[0, 0],
        operator.states(all_values)[0, 0],
        outputs[0, 0],
        relative_error(weights @ all_values, outputs),
        relative_error(operator.chunked(all_values, CHUNK), outputs),
        float(weights.triu(1).abs().max()),
    )


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Norm of the difference divided by the norm of what is expected."""
    return float((found - expected).norm() / expected.norm())
