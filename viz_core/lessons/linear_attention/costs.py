"""What a head costs with a softmax and with a state."""

from typing import NamedTuple


class HeadCost(NamedTuple):
    """Multiplications for all tokens, and numbers kept for the next, of one causal head."""

    softmax: int
    linear: int
    cache: int
    state: int


def head_cost(num_tokens: int, width: int) -> HeadCost:
    """Return the costs of n tokens and width d (Katharopoulos 2020, section 3.2).

    softmax: n (n + 1) d, for each query with each key up to it, and with each value; linear: 2 n d^2, to write and to
    read the state. Kept: 2 n d keys and values, or a state of d^2.
    """
    return HeadCost(num_tokens * (num_tokens + 1) * width, 2 * num_tokens * width**2, 2 * num_tokens * width, width**2)
