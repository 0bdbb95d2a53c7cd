"""Greedy and beam search with a key-value cache."""

from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.models.decoding_step import begin_decoding
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained.tokenization import SpecialTokens
from viz_core.runtime.hooks import may_end
from viz_core.trace.intervene import is_editing
from viz_core.trace.trace import current_trace

Logits: TypeAlias = Float[Tensor, "steps vocab"]

PRUNED = 2
"""So many candidates of a step are listed after those that fit in the beam."""


class Candidate(NamedTuple):
    """A hypothesis that a step of beam search considered: one kept before it, with a token more."""

    token: int
    log_probability: float  # of the whole hypothesis
    parent: int  # its place among the candidates of the step before; 0 at the first step
    in_beam: bool


@torch.inference_mode()
def greedy_search(
    model: EncoderDecoder,
    source: Int[Tensor, "batch keys"],
    valid_lens: Int[Tensor, " batch"],
    special: SpecialTokens,
    max_new_tokens: int,
    logits_of: list[Logits] | None = None,
    encoded: Any = None,
) -> list[list[int]]:
    """The likeliest token at each step, y_t = argmax p(y | y_<t, x), until eos or max_new_tokens.

    Rows that have ended leave the batch: few sentences are as long as the longest. While heads are edited all stay, as
    `gate` and `patch` can edit row by row.

    Args:
        logits_of: where given, gets each row's logits, from which its tokens were chosen.
        encoded: what the encoder returned for this source, where it has run.

    Returns:
        Token ids of each row, without bos, with eos where it was reached.
    """
    encoded = model.encoder(source, valid_lens) if encoded is None else encoded
    step, state = begin_decoding(model.decoder, encoded, valid_lens)
    token = torch.full((source.shape[0], 1), special.bos, device=source.device)
    rows = list(range(source.shape[0]))  # of the batch
    found: list[list[int]] = [[] for _ in rows]
    seen: list[list[Float[Tensor, " vocab"]]] = [[] for _ in rows]
    for _ in range(max_new_tokens):
        may_end()
        logits, state = step(token, state)
        token = _without_specials(logits[:, -1], special).argmax(dim=-1, keepdim=True)
        for place, (row, chosen) in enumerate(zip(rows, token[:, 0].tolist(), strict=True)):
            if found[row][-1:] != [special.eos]:
                found[row].append(chosen)
                seen[row].append(logits[place, -1])
        going = [place for place, row in enumerate(rows) if found[row][-1] != special.eos]
        if not going:
            break
        if len(going) < len(rows) and not is_editing() and current_trace() is None:
            active = torch.tensor(going, device=source.device)
            token, state, rows = token[active], state.select(active), [rows[place] for place in going]
    if logits_of is not None and max_new_tokens > 0:
        logits_of.extend(map(torch.stack, seen))
    return found


@torch.inference_mode()
def beam_search(
    model: EncoderDecoder,
    source: Int[Tensor, "batch keys"],
    valid_lens: Int[Tensor, " batch"],
    special: SpecialTokens,
    max_new_tokens: int,
    beam: int = 4,
    length_penalty: float = 1.0,
    logits_of: list[Logits] | None = None,
    candidates_of: list[list[Candidate]] | None = None,
    encoded: Any = None,
) -> list[list[int]]:
    """The best of `beam` hypotheses by log p(y | x) / lp(y), with lp(y) = ((5 + |y|) / 6)^length_penalty.

    (Wu 2016, equation 14, without its coverage term.) A hypothesis that ends leaves the beam, which is then one
    narrower (Sutskever 2014, section 3.2): a beam of 1 is greedy search. Those that max_new_tokens cuts off are judged
    with the others. ValueError if beam < 1.

    Args:
        logits_of: where given, gets each row's logits, from which the tokens of its best hypothesis were chosen.
        candidates_of: where given, gets the most likely candidates of each step for the first row: those kept, then
            `PRUNED` more.
        encoded: as in `greedy_search`.
    """
    if beam < 1:
        raise ValueError(f"beam: expected at least 1, got {beam}")
    batch, device = source.shape[0], source.device
    encoded = model.encoder(source, valid_lens) if encoded is None else encoded
    next_step, state = begin_decoding(model.decoder, encoded, valid_lens)
    state = state.select(torch.arange(batch, device=device).repeat_interleave(beam))
    first_row = torch.arange(batch, device=device)[:, None] * beam
    hypotheses = torch.full((batch * beam, 1), special.bos, device=device)
    # log p of each live hypothesis. All begin alike, so only the first may branch at the first step.
    scores = torch.full((batch, beam), -torch.inf, device=device)
    scores[:, 0] = 0.0
    places = torch.full((batch, 1), beam, device=device)  # how wide each beam still is
    best: list[tuple[float, list[int]]] = [(-torch.inf, []) for _ in range(batch)]
    seen: list[tuple[Tensor, Tensor]] = []  # of each step, and whose child each hypothesis became
    ends = [0] * batch  # the best hypotheses' places among those of their last step

    for step in range(1, max_new_tokens + 1):
        may_end()
        logits, state = next_step(hypotheses[:, -1:], state)
        log_p = _without_specials(logits[:, -1], special).float().log_softmax(dim=-1)
        vocab = log_p.shape[-1]
        every = (scores[..., None] + log_p.view(batch, beam, vocab)).flatten(1)
        ranked, best_first = every.topk(beam if candidates_of is None else min(beam + PRUNED, beam * vocab), dim=-1)
        if candidates_of is not None:
            candidates_of.append(_candidates(ranked[0], best_first[0], vocab, int(places[0])))
        scores, top = ranked[:, :beam], best_first[:, :beam]
        scores = scores.masked_fill(torch.arange(beam, device=device) >= places, -torch.inf)
        parents, tokens = (first_row + top // vocab).flatten(), top % vocab
        hypotheses = torch.cat([hypotheses[parents], tokens.view(-1, 1)], dim=1)
        state = state.select(parents)
        if logits_of is not None:
            seen.append((logits[:, -1], parents))
        ended = (tokens == special.eos) & scores.isfinite()
        judged = scores.isfinite() if step == max_new_tokens else ended
        for row, rank in judged.nonzero().tolist():
            score = float(scores[row, rank]) / _length_penalty(step, length_penalty)
            if score > best[row][0]:
                best[row] = (score, hypotheses[row * beam + rank, 1:].tolist())
                ends[row] = row * beam + rank
        places -= ended.sum(dim=1, keepdim=True)
        scores = scores.masked_fill(ended, -torch.inf)
        # log p only falls, so even the most hopeful live hypothesis cannot pass this bound.
        bound = (scores.amax(dim=1) / _length_penalty(max_new_tokens, length_penalty)).tolist()
        if all(b <= done for b, (done, _) in zip(bound, best, strict=True)):
            break
    found = [tokens for _, tokens in best]
    if logits_of is not None:
        logits_of.extend(_traced_back(seen[: len(ids)], end) for ids, end in zip(found, ends, strict=True))
    return found


def _candidates(
    ranked: Float[Tensor, " hypotheses"], best_first: Int[Tensor, " hypotheses"], vocab: int, width: int
) -> list[Candidate]:
    """The candidates of a step, the most likely first; impossible ones are left out."""
    pairs = zip(ranked.tolist(), best_first.tolist(), strict=True)
    return [
        Candidate(number % vocab, log_p, number // vocab, rank < width)
        for rank, (log_p, number) in enumerate(pairs)
        if log_p > -torch.inf and rank < width + PRUNED
    ]


def _traced_back(seen: list[tuple[Float[Tensor, "hypotheses vocab"], Int[Tensor, " hypotheses"]]], end: int) -> Logits:
    """The logits along one hypothesis, from its last step back to its first."""
    way = []
    for logits, parents in reversed(seen):
        end = int(parents[end])
        way.append(logits[end])
    return torch.stack(way[::-1])


def _length_penalty(length: int, alpha: float) -> float:
    return float(((5 + length) / 6) ** alpha)


def _without_specials(logits: Tensor, special: SpecialTokens) -> Tensor:
    """Exclude padding and the beginning token."""
    ids = torch.tensor([special.pad, special.bos], device=logits.device)
    return logits.index_fill(-1, ids, -torch.inf)
