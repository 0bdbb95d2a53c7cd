"""Addition and erase-then-write on the same stream: two states, and what each returns."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from viz_core.lessons.linear_attention.stream import LETTERS, RuleName, Stream


@dataclass(frozen=True, eq=False)
class Returned:
    """The state of a rule after a token, without decay, and what it returns.

    Attributes:
        errors: by letter written so far, the distance of what the state returns from the letter's last value.
    """

    state: Float[Tensor, "d v"]
    errors: dict[str, float]


def returned(stream: Stream, rule: RuleName, time: int) -> Returned:
    """Return the state after the token at `time`, counted from 0, and its errors."""
    state = stream.operator(rule, decay=1.0).states(stream.values[None, None])[0, 0, time]
    errors = {}
    for letter, name in enumerate(LETTERS):
        last = stream.last_written(letter, time)
        if last is not None:
            errors[name] = float((stream.read(state, letter) - stream.values[last]).norm())
    return Returned(state, errors)
