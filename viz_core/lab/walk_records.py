"""What one forward pass computed, stage by stage, as arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float
from PIL import Image
from torch import Tensor

from viz_core.maps.alignments import HeadErrors
from viz_core.trace.edits import Edit
from viz_core.trace.output_edits import off
from viz_core.trace.weight_edits import knock_out

_SHOWN = 8  # words of a choice

Edits: TypeAlias = tuple[tuple[str, ...], ...]
"""What differs from the model: ("off", site, head) for a head that is switched off, ("hide", site, query, key) for a
key that a query may not attend to, in all heads of that site."""


def walk_edits(edits: Edits) -> dict[str, list[Edit]]:
    """Return edits as `viz_core.trace.intervene` takes them."""
    made: dict[str, list[Edit]] = {}
    for name, site, *numbers in edits:
        places = [int(number) for number in numbers]
        if name == "off" and len(places) == 1:
            edit = off(*places)
        elif name == "hide" and len(places) == 2:
            edit = knock_out(None, query=places[0], key=places[1])
        else:
            raise ValueError(
                f"edits: expected ('off', site, head) or ('hide', site, query, key), got {(name, *numbers)}"
            )
        made.setdefault(site, []).append(edit)
    return made


@dataclass(frozen=True, eq=False)
class Attention:
    """One attention of a block."""

    site: str  # as in a trace
    # queries, keys, values: after projection, one matrix a head; there may be fewer heads of keys and values
    queries: Float[np.ndarray, "heads rows d"]
    keys: Float[np.ndarray, "key_heads columns d"]
    values: Float[np.ndarray, "key_heads columns v"]
    scores: Float[np.ndarray, "heads rows columns"]  # (q . k) / sqrt(d) of every pair, as if nothing were masked
    allowed: Bool[np.ndarray, "heads rows columns"]  # False where a query may not attend to a key
    # softmax of the allowed scores of each row; zeros for a head that is switched off
    weights: Float[np.ndarray, "heads rows columns"]
    outputs: Float[np.ndarray, "heads rows v"]  # weights times values, of each head
    joined: Float[np.ndarray, "rows width"]  # the heads' outputs side by side, what W_o multiplies
    added: Float[np.ndarray, "rows width"]  # W_o times `joined`
    state: Float[np.ndarray, "rows width"]  # after the addition to the block's stream, and the norm if it comes last

    @property
    def crosses(self) -> bool:
        """Whether its keys come from another stack."""
        return self.site.endswith("cross")


@dataclass(frozen=True, eq=False)
class Block:
    """One layer: what enters, its attentions, the feed-forward net, and what leaves."""

    input: Float[np.ndarray, "rows width"]
    attentions: tuple[Attention, ...]
    neurons: Float[np.ndarray, "rows hidden"]  # inside the feed-forward net, what its last matrix multiplies
    ffn: Float[np.ndarray, "rows width"]  # the output of the feed-forward net
    output: Float[np.ndarray, "rows width"]  # the stream after it


@dataclass(frozen=True, eq=False)
class Stack:
    """The layers of an encoder or a decoder, with what they read."""

    name: str
    tokens: tuple[str, ...]  # of each row
    embedded: Float[np.ndarray, "rows width"]  # one vector for each token, before positions
    # what is added to them; None where positions rotate queries and keys instead
    positions: Float[np.ndarray, "rows width"] | None
    blocks: tuple[Block, ...]


@dataclass(frozen=True, eq=False)
class Choice:
    """What may follow a token: every word or class, the likeliest with their names, and the one that was chosen."""

    # numbers, words, logits: of the likeliest, the chosen one among them
    numbers: tuple[int, ...]
    words: tuple[str, ...]
    logits: tuple[float, ...]
    chosen: str
    distribution: Float[np.ndarray, " vocabulary"]  # probability of every word, after temperature and top-k

    def probabilities(self, numbers: Sequence[int]) -> list[float]:
        """Return the probabilities of these words."""
        return [float(self.distribution[number]) for number in numbers]

    @property
    def probability(self) -> float:
        """The probability of the chosen word."""
        return float(self.distribution[self.numbers[self.words.index(self.chosen)]])


@dataclass(frozen=True, eq=False)
class Walk:
    """One pass of a model over a whole text or picture."""

    stacks: tuple[Stack, ...]  # the encoder first, where there is one
    choices: tuple[Choice, ...]  # one for each word that was written after the given ones, or one for a picture
    num_given: int  # tokens of the last stack that were there before the first choice
    residual: float  # max |logits of this pass - logits of the model's own run|
    # what a vision model saw, with its rows and columns of patches
    picture: tuple[Image.Image, tuple[int, int]] | None = None
    alignment_errors: HeadErrors = ()  # of the cross-attention, as in the model's training.json

    @property
    def written(self) -> tuple[str, ...]:
        """The words that were chosen, or the class."""
        return tuple(choice.chosen for choice in self.choices)

    def follows(self, other: "Walk", step: int) -> bool:
        """Whether another walk's choice at a step comes after the same written words."""
        both = [walk._written_by(step) for walk in (self, other)]
        return step < min(len(self.choices), len(other.choices)) and both[0] == both[1]

    @property
    def outcome(self) -> tuple[tuple[str, ...], tuple[tuple[str, float | None], ...]]:
        """The text that was given, and all words written, each with its probability where its choice is recorded."""
        *sources, last = self.stacks
        given = sources[0].tokens if sources else () if self.picture else last.tokens[: self.num_given]
        known = last.tokens[1 : self.num_given] if sources else ()
        chosen = [(choice.chosen, choice.probability) for choice in self.choices]
        return given, (*((word, None) for word in known), *chosen)

    def _written_by(self, step: int) -> tuple[str, ...]:
        """The words before a step's choice that the model wrote itself: all of a decoder that reads an encoder."""
        start = 0 if len(self.stacks) > 1 else self.num_given
        return self.stacks[-1].tokens[start : self.num_given + step]


def choice_among(
    logits: Float[Tensor, " words"], chosen: int, names: Callable[[Sequence[int]], Sequence[str]], **sampling: float
) -> Choice:
    """Return the likeliest of these logits, the chosen one among them: softmax(logits / temperature), then top-k.

    Args:
        names: the words of some of their numbers.
        sampling: "temperature", 1 unless given, and "top_k", 0 for all.
    """
    temperature, top_k = sampling.get("temperature") or 1.0, int(sampling.get("top_k", 0))
    scaled = logits.cpu().double() / temperature
    if 0 < top_k < len(scaled):
        scaled = scaled.where(scaled >= scaled.topk(top_k).values[-1], -torch.inf)
    probabilities = scaled.softmax(dim=-1)
    shown = logits.topk(min(_SHOWN, len(logits))).indices.tolist()
    shown = shown if chosen in shown else [*shown[:-1], chosen]
    words = tuple(names(shown))
    logits_shown = tuple(float(logits[i]) for i in shown)
    return Choice(tuple(shown), words, logits_shown, words[shown.index(chosen)], probabilities.float().numpy())
