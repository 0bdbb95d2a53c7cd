"""Query on a head of a model: what its matrices read and write."""

from __future__ import annotations

from dataclasses import dataclass

from viz_core.circuits import direction_tokens, ov_circuit, qk_circuit
from viz_core.hub import HubModel

_DIRECTIONS, _TOKENS = 2, 6


@dataclass(frozen=True)
class Direction:
    """A direction of a head's circuit: of "QK" tokens of queries and keys, of "OV" tokens read and written."""

    kind: str
    strength: float  # its singular value
    first: tuple[str, ...]
    second: tuple[str, ...]


@dataclass(frozen=True)
class HeadCircuits:
    """The strongest directions of a head, and why there are none of a kind of circuit."""

    directions: tuple[Direction, ...]
    refused: tuple[tuple[str, str], ...]  # kind, and the library's reason


def head_circuits(model: HubModel, site: str, head: int) -> HeadCircuits:
    """Query: what a head's matrices read and write."""
    found, refused = [], []
    if site.startswith("vision."):
        return HeadCircuits((), tuple((kind, "The vision tower reads patches, not tokens.") for kind in ("QK", "OV")))
    for kind, circuit_of in (("QK", qk_circuit), ("OV", ov_circuit)):
        try:
            circuit = circuit_of(model.network, site, head)
            for number in range(_DIRECTIONS):
                pair = direction_tokens(model.network, circuit, number, _TOKENS)
                first, second = (tuple(token.label for token in model.read(ids.tolist())) for ids in pair)
                found.append(Direction(kind, float(circuit.singular_values[number]), first, second))
        except (ValueError, NotImplementedError) as error:  # the latter of models with several tables of tokens
            refused.append((kind, str(error)))
    return HeadCircuits(tuple(found), tuple(refused))
