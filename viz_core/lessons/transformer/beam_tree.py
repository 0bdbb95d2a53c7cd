"""The tree of hypotheses that beam search keeps and prunes, beside greedy search."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from viz_core.pretrained import Translation, Translator
from viz_core.pretrained.decoding import Candidate, beam_search
from viz_core.pretrained.samples import held_out
from viz_core.pretrained.translator import MAX_NEW_TOKENS, length_limits

BEAM = 4

SAMPLE_ID = "35"
"""Of the 200 held-out sentences, the shortest that beam 4 translates as a reference does and greedy search does not."""


class Node(NamedTuple):
    """A hypothesis in the tree, named by its last token."""

    token: str
    log_probability: float  # of the whole hypothesis
    parent: int  # its place among the nodes of the step before
    in_beam: bool  # whether the beam keeps it
    ended: bool  # whether its last token is the end mark
    on_beam: bool  # whether it begins beam search's result
    on_greedy: bool  # whether it begins greedy search's result


class Found(NamedTuple):
    """The result of a search."""

    text: str
    ids: tuple[int, ...]
    log_probability: float

    @property
    def score(self) -> float:
        """Log-probability / ((5 + n) / 6) of n tokens, by which beam search compares hypotheses that ended."""
        return self.log_probability * 6 / (5 + len(self.ids))


class BeamTree(NamedTuple):
    """The nodes of each step, the most likely first, and both results."""

    steps: tuple[tuple[Node, ...], ...]
    beam: Found
    greedy: Found

    @property
    def greedy_steps(self) -> int:
        """For so many steps the beam holds the beginning of greedy search's result."""
        return sum(any(node.on_greedy and node.in_beam for node in step) for step in self.steps)


def sample() -> str:
    """Return the English sentence for which the two searches differ."""
    return next(each.english for each in held_out() if each.id == SAMPLE_ID)


@torch.inference_mode()
def beam_tree(translator: Translator, translation: Translation) -> BeamTree:
    """Search with a beam of 4, and greedily, for a sentence that was translated."""
    source = list(translation.source_ids)
    X, lengths = torch.tensor([source], device=translator.device), torch.tensor([len(source)], device=translator.device)
    limit = length_limits([source], MAX_NEW_TOKENS)[0]
    steps: list[list[Candidate]] = []
    beam_search(translator.model, X, lengths, translator.special, limit, BEAM, candidates_of=steps)
    results = [translator.translate_ids([source], beam=width)[0] for width in (BEAM, 1)]
    beam, greedy = (_beginnings(steps, result.target_ids) for result in results)
    nodes = []
    for i, step in enumerate(steps):
        names = translator.readable_tokens([each.token for each in step])
        ended = [each.token == translator.special.eos for each in step]
        nodes.append(
            tuple(Node(names[j], *each[1:], ended[j], (i, j) in beam, (i, j) in greedy) for j, each in enumerate(step))
        )
    return BeamTree(tuple(nodes), *(Found(each.text, each.target_ids, each.log_probability) for each in results))


def _beginnings(steps: Sequence[Sequence[Candidate]], ids: Sequence[int]) -> set[tuple[int, int]]:
    """Step and rank of each beginning of a hypothesis, as far as the tree has it."""
    found, parent = set(), 0
    for i, (step, token) in enumerate(zip(steps, ids, strict=False)):
        ranks = [j for j, each in enumerate(step) if (each.token, each.parent) == (token, parent)]
        if not ranks:
            break
        parent = ranks[0]
        found.add((i, parent))
        if not step[parent].in_beam:
            break
    return found
