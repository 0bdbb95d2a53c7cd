"""What each position scheme costs: numbers learned, stored and computed, by the size of the model."""

from __future__ import annotations

from dataclasses import dataclass

from viz_core.lessons.position_embeddings.setting import Sizes

_BYTES = 4  # float32


@dataclass(frozen=True)
class Cost:
    """Numbers a scheme needs in one layer, beyond attention without positions.

    Args:
        parameters: learned.
        stored: kept between calls: parameters and fixed tables.
        computed: score-sized numbers made beside Q K^T for one sequence.
    """

    parameters: int = 0
    stored: int = 0
    computed: int = 0

    @property
    def stored_bytes(self) -> int:
        """What is stored, in bytes of float32."""
        return _BYTES * self.stored

    @property
    def computed_bytes(self) -> int:
        """What is computed, in bytes of float32."""
        return _BYTES * self.computed


def none(_s: Sizes) -> Cost:
    """0: nothing at all."""
    return Cost()


def sinusoidal(s: Sizes) -> Cost:
    """n d stored: a fixed table, added to the input (Vaswani 2017, section 3.5)."""
    return Cost(stored=s.num_tokens * s.num_hiddens)


def learned(s: Sizes) -> Cost:
    """n d learned: a table, added to the input (Devlin 2019, Dosovitskiy 2021)."""
    return _all_learned(s.num_tokens * s.num_hiddens)


def absolute(s: Sizes) -> Cost:
    """n w learned, a vector of a head's width w for each key, shared by heads; h n^2 scores q . e."""
    return _all_learned(s.num_tokens * s.head_dim, _score_map(s))


def relative(s: Sizes) -> Cost:
    """t (2n - 1) w learned, a vector for each offset in each of t tables; h n (2n - 1) scores q . r by offset."""
    return _all_learned((s.tables or 1) * (2 * s.num_tokens - 1) * s.head_dim, _by_offset(s, s.num_tokens))


def shaw(s: Sizes) -> Cost:
    """t (2k + 1) w learned, for clipped offsets; as many scores as without clipping (Shaw 2018, section 3.2)."""
    return _all_learned((s.tables or 1) * (2 * s.max_distance + 1) * s.head_dim, _by_offset(s, s.num_tokens))


def relative_2d(s: Sizes) -> Cost:
    """t (2 height - 1 + 2 width - 1) w learned, for offsets of rows and of columns; their scores and the sum."""
    vectors = (2 * s.height - 1) + (2 * s.width - 1)
    computed = _by_offset(s, s.height) + _by_offset(s, s.width) + _score_map(s)
    return _all_learned((s.tables or 1) * vectors * s.head_dim, computed)


def rotary(s: Sizes) -> Cost:
    """n w stored: a cosine and a sine for each position and pair (Su 2021, equation 34)."""
    return Cost(stored=s.num_tokens * s.head_dim)


def alibi(s: Sizes) -> Cost:
    """h slopes stored; h n^2 penalties (Press 2022, section 3)."""
    return Cost(stored=s.num_heads, computed=_score_map(s))


def t5(s: Sizes) -> Cost:
    """B h learned, a number for each bucket and head; h n^2 biases (Raffel 2020, section 2.1)."""
    return _all_learned(s.num_buckets * s.num_heads, _score_map(s))


def _all_learned(parameters: int, computed: int = 0) -> Cost:
    return Cost(parameters, parameters, computed)


def _score_map(s: Sizes) -> int:
    return s.num_heads * s.num_tokens**2


def _by_offset(s: Sizes, side: int) -> int:
    """Scores by offset: for each head and token, one for each of the 2 side - 1 offsets along a line."""
    return s.num_heads * s.num_tokens * (2 * side - 1)
