"""Register of the measures of heads, from the files in the folder head_measures.

To add one, write a file there that defines a `Measure`, and its words `measure_NAME` and `about_NAME` in
assets/text/LANGUAGE/attention-view.md. Fingerprints, the attention view and the model lab list the register.

A role of heads known from the literature is a measure with a target: the share of attention on the target. Roles that
only the words of a text decide are defined here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.maps.head_measure import MapInfo, Measure, Target
from viz_core.maps.measures import equal_tokens, induction_targets, offset_mass, target_mass
from viz_core.maps.word_maps import is_word, punctuation, separators
from viz_core.runtime.registry import find_entries

MEASURES = {measure.name: measure for measure in find_entries("viz_core.maps.head_measures", Measure)}
"""Every measure by its name, in the order in which they are listed."""


REACH = 8
OFFSETS = tuple(range(-REACH, REACH + 1))
"""Offsets from query to key that are measured: -1 is the token before."""

_PATTERNS = ("first", "separator", "punctuation", "same-word", "induction")

COLUMNS = (*(f"{offset:+d}" for offset in OFFSETS), *_PATTERNS)
"""What `role_masses` measures of a map, in order."""

_TARGETS: dict[str, Target] = {name: each.target for name, each in MEASURES.items() if each.target}

ROLES = {name: name if target.offset is None else f"{target.offset:+d}" for name, target in _TARGETS.items()} | {
    name: name for name in _PATTERNS
}
"""The roles by the field's names, each with its column: every measure with a target, and what only the words of a text
decide. Attention heads that

- diagonal, previous, next: look at themselves, one token back or one ahead (`offset_mass`; Voita 2019, section 4.1);
- first: rest on the first token (`key_mass`; attention sinks, Xiao 2024, section 3.1);
- separator, punctuation: look at tokens that separate or end, at signs (`key_mass`; Clark 2019, sections 3.2 and 3.3);
- same-word: look at other places of the same word, M = mean_i sum_(j != i, t_j = t_i) w_ij (`target_mass`; duplicate
  token heads, Wang 2023, "Interpretability in the Wild", section 3.1);
- induction: look at what came after the same token earlier on (`induction_mass`; Olsson 2022).
"""

SURE = 0.5
"""A head has a role whose attention beyond chance is, at the low end of its interval, at least this."""


@dataclass(frozen=True, eq=False)
class RoleTargets:
    """Target keys of each role in one text, computed once for all layers and heads.

    Attributes:
        visible: keys that a query may see.
        on_itself: whether queries and keys are places of one sequence; else offsets and induction mean nothing.
        masks: True where a key is a target of a query, by role; of two sequences without offsets and induction.
    """

    visible: Bool[Tensor, "queries keys"]
    on_itself: bool
    masks: Mapping[str, Bool[Tensor, "queries keys"]]

    @classmethod
    def of(cls, queries: Sequence[str], keys: Sequence[str], on_itself: bool, causal: bool = False) -> "RoleTargets":
        """Return the targets for maps with these tokens; words are compared without case.

        Args:
            causal: no query sees a later key.

        Raises:
            ValueError: if `on_itself` with unequal numbers of queries and keys, or there are none.
        """
        if not queries or not keys or (on_itself and len(queries) != len(keys)):
            raise ValueError(
                f"expected queries and keys, as many where on_itself, got {len(queries)} and {len(keys)}, {on_itself=}"
            )
        rows, columns = ([text.casefold() for text in side] for side in (queries, keys))
        same = equal_tokens(rows, columns) & torch.tensor([is_word(text) for text in keys])
        if on_itself:
            same.fill_diagonal_(False)
        visible = torch.ones_like(same).tril() if causal else torch.ones_like(same)
        info = MapInfo(len(queries), len(keys), on_itself, separators(keys))
        masks = {name: target.mask(info) for name, target in _TARGETS.items() if on_itself or target.offset is None}
        signs = torch.isin(torch.arange(len(keys)), torch.tensor(punctuation(keys)))
        masks["punctuation"] = signs.expand(len(queries), -1)
        masks["same-word"] = same & visible
        return cls(visible, on_itself, masks | ({"induction": induction_targets(keys)} if on_itself else {}))

    @property
    def even(self) -> Float[Tensor, "1 queries keys"]:
        """Map of uniform attention over the visible keys, which gives each role's share by chance."""
        seen = self.visible.float()
        return (seen / seen.sum(dim=-1, keepdim=True))[None]


def role_masses(weights: Float[Tensor, "heads queries keys"], targets: RoleTargets) -> Float[Tensor, "heads columns"]:
    """Share of each head's attention on the targets of each role, 0 to 1, in the order of `COLUMNS`.

    NaN where a text does not ask: no token so far away, no sign, no word that comes twice.

    Raises:
        ValueError: if the targets are of maps of another size.
    """
    if tuple(weights.shape[1:]) != (sizes := tuple(targets.visible.shape)):
        raise ValueError(f"weights: expected maps of {sizes} as the targets are, got {tuple(weights.shape[1:])}")
    absent = weights.new_full((len(weights),), torch.nan)
    reach = weights.shape[-1] if targets.on_itself else 0
    columns = [offset_mass(weights, offset) if abs(offset) < reach else absent for offset in OFFSETS]
    masks = {name: mask for name, mask in targets.masks.items() if mask.any()}
    columns += [target_mass(weights, masks[name]) if name in masks else absent for name in _PATTERNS]
    return torch.stack(columns, dim=-1)


def beyond_chance(mass: float, chance: float) -> float:
    """Share beyond chance, (M - C) / (1 - C): 0 for uniform attention, 1 for attention on targets only (Cohen 1960)."""
    return (mass - chance) / (1 - chance) if chance < 1 else 0.0


def surest_role(shares: Mapping[str, tuple[float, float, float]]) -> tuple[str, float] | None:
    """Return the role with the most attention beyond chance at the low end, if at least `SURE`, and that of its mean.

    Args:
        shares: mean attention, the low end of its interval, and chance, by role; NaN where a role was not measured.
    """
    low = {name: beyond_chance(low, chance) for name, (_, low, chance) in shares.items()}
    best = max((name for name in low if low[name] >= SURE), key=lambda name: low[name], default=None)
    return None if best is None else (best, float(beyond_chance(shares[best][0], shares[best][2])))
