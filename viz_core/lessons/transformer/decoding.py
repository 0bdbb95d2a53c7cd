"""The tree of beam search, and the logit lens on a translation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from viz_core.circuits import logit_attribution
from viz_core.pretrained import Translation, Translator
from viz_core.pretrained.decoding import Candidate, beam_search
from viz_core.pretrained.samples import held_out
from viz_core.pretrained.translator import MAX_NEW_TOKENS, length_limits
from viz_core.trace import record

BEAM = 4

SAMPLE_ID = "117"
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


class Lens(NamedTuple):
    """Each layer's prediction at each step: rows are the input and the blocks, columns the words written."""

    tokens: tuple[tuple[str, ...], ...]  # the likeliest one
    probabilities: Float[np.ndarray, "layers steps"]  # of the likeliest one
    written: Float[np.ndarray, "layers steps"]  # of the token that was written in the end
    residual: float  # max |logits of the last row - logits of the model|

    def before_and_after(self, final: Sequence[str]) -> tuple[int, float, float]:
        """Number of final tokens that are likeliest before the last layer, and their mean probability before and after.

        (0, 0, 0) where there are none.
        """
        early = [j for j, token in enumerate(final) if any(row[j] == token for row in self.tokens[:-1])]
        before, after = self.written[-2:, early].mean(axis=-1).tolist() if early else (0.0, 0.0)
        return len(early), before, after


class LogitSplit(NamedTuple):
    """The logit of each written token minus that of its rival, the most likely other token, as a sum of parts."""

    names: tuple[tuple[str, int | None, int | None], ...]  # kind, layer and head
    parts: Float[np.ndarray, "parts steps"]
    differences: Float[np.ndarray, " steps"]
    rivals: tuple[str, ...]
    residual: float  # max |sum of parts - difference|

    @property
    def heads(self) -> tuple[int, ...]:
        """Which of the parts are heads."""
        return tuple(i for i, (_, _, head) in enumerate(self.names) if head is not None)

    def of_heads(self, step: int) -> float:
        """The sum over all heads at a step."""
        return float(self.parts[list(self.heads), step].sum())

    def strongest(self, step: int, most: int) -> list[int]:
        """The heads with the largest effects at a step, in either direction, sorted from for to against."""
        heads = sorted(self.heads, key=lambda head: -abs(self.parts[head, step]))[:most]
        return sorted(heads, key=lambda head: -self.parts[head, step])

    def max_for(self, step: int) -> int:
        """The head that adds most at a step."""
        return max(self.heads, key=lambda head: self.parts[head, step])


@torch.inference_mode()
def through_the_layers(translator: Translator, translation: Translation) -> Lens:
    """Apply the decoder's output layer to its state after each block (nostalgebraist 2020, "the logit lens")."""
    decoder = translator.model.decoder
    source, target, lengths = translator.teacher_forced(translation.source_ids, translation.target_ids)
    with record(states=True) as trace:
        own = translator.model(source, target, lengths)[0]
    names = ["decoder.embedding", *(f"decoder.{i}.residual" for i in range(decoder.num_blks))]
    logits = torch.stack([decoder.dense(decoder.norm(trace.states[name][0])) for name in names])
    probabilities = logits.float().softmax(dim=-1)
    p, best = probabilities.max(dim=-1)
    wanted = torch.tensor([translation.target_ids], device=target.device).expand(len(logits), -1)
    written = probabilities.gather(-1, wanted[..., None])[..., 0]
    tokens = tuple(translator.readable_tokens(row) for row in best.tolist())
    return Lens(tokens, p.cpu().numpy(), written.cpu().numpy(), float((logits[-1] - own).abs().max()))


@torch.inference_mode()
def split_of_the_logits(translator: Translator, translation: Translation) -> LogitSplit:
    """Split the logit of each written token, minus its rival's, over input, heads, feed-forward nets and biases."""
    model = translator.model
    source, target, lengths = translator.teacher_forced(translation.source_ids, translation.target_ids)
    wanted = torch.tensor([translation.target_ids], device=target.device)
    with record(values=True, states=True) as trace:
        logits = model(source, target, lengths)[0]
    special = translator.special
    never = torch.tensor([special.pad, special.bos], device=target.device)
    others = logits.index_fill(-1, never, -torch.inf).scatter(-1, wanted[0, :, None], -torch.inf)
    best, rivals = others.max(dim=-1)
    parts = logit_attribution(model, trace, wanted, position=None, against=rivals[None])
    added = torch.stack([part.value[0] for part in parts])
    differences = logits.gather(-1, wanted[0, :, None])[:, 0] - best
    names, words = tuple(part[:3] for part in parts), translator.readable_tokens(rivals.tolist())
    residual = float((added.sum(dim=0) - differences).abs().max())
    return LogitSplit(names, added.cpu().numpy(), differences.cpu().numpy(), words, residual)
