"""Keep heads of self-attention from resting on one token: penalties on their weights, and a bound on their scores.

A head that finds nothing rests on a mark, whose value adds little. Once its scores are so large that the softmax gives
all weight to the mark, no gradient is left to bring it back: so the bound belongs to the penalties. Heads kept from the
marks attend evenly instead, and show as little; so some are guided to the token before, after or at their own place.
Raganato, Scherrer and Tiedemann (2020, "Fixed Encoder Self-Attention Patterns in Transformer-Based Machine
Translation") fix such patterns by hand without a loss of BLEU; here they are learned and may be left.
"""

from collections.abc import Iterable, Iterator, Mapping

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.attention import MultiHeadAttention
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.models.transformer import TransformerEncoder
from viz_core.models.transformer_decoder import TransformerDecoder
from viz_core.trace import Trace

FREE_ON_MARK, FREE_ON_KEY = 0.25, 0.35
"""Weight beyond uniform attention that costs nothing: of a query on a mark, and of all queries on average on a key."""


OFFSETS = {"<": -1, "=": 0, ">": 1}
"""Signs of guided heads: they attend to the token before, to their own, to the next."""
GUIDED = 0.6
"""Weight on the token of its sign that a guided head is not asked to exceed: beyond it the softmax has no gradient."""


def token_penalty(
    weights: Float[Tensor, "batch heads n n"], visible: Bool[Tensor, "batch n n"], marks: Int[Tensor, " batch"]
) -> Float[Tensor, ""]:
    """Mean weight beyond what is free: on the mark, and of each map's queries together on any one key.

    mean_(b,h,i) relu(w_(i,mark) - (1/n_i + 0.25)) + mean_(b,h) sum_j relu(w_j - (u_j + 0.35)), where n_i is the number
    of keys that query i sees, w_j the mean weight on key j, and u_j the same of uniform attention. Queries that see
    one key or none count nowhere.

    Args:
        visible: True where a query is a token and may see the key.
        marks: place of each sequence's start or end mark.
    """
    counts = visible.sum(dim=-1)
    real = (counts > 1).float()[:, None]  # (batch, 1, queries)
    even = visible.float() / counts.clamp(min=1)[..., None]
    on_mark = weights.gather(-1, marks[:, None, None, None].expand(*weights.shape[:-1], 1))[..., 0]
    beyond = F.relu(on_mark - (1 / counts.clamp(min=1)[:, None] + FREE_ON_MARK))
    queries = real.sum(dim=-1).clamp(min=1)
    received = (weights * real[..., None]).sum(dim=-2) / queries[..., None]
    uniform = (even[:, None] * real[..., None]).sum(dim=-2) / queries[..., None]
    columns = F.relu(received - (uniform + FREE_ON_KEY)).sum(dim=-1).mean()
    return (beyond * real).sum() / (real.sum() * weights.shape[1]).clamp(min=1) + columns


def key_penalty(weights: Float[Tensor, "batch heads queries keys"], free: float) -> Float[Tensor, ""]:
    """Mean over batch and heads of sum_j relu(w_j - free), with w_j the mean weight of all queries on key j."""
    return F.relu(weights.mean(dim=-2) - free).sum(dim=-1).mean()


def guide_penalty(
    weights: Float[Tensor, "batch heads n n"], visible: Bool[Tensor, "batch n n"], signs: str
) -> Float[Tensor, ""]:
    """Sum over the guided heads of mean_(b,i) relu(0.6 - w_(i,i+o)), over queries that see their key and another.

    Args:
        signs: a sign a head, one of OFFSETS or "." for a head that is free.
    """
    if len(signs) != weights.shape[1] or set(signs) - {*OFFSETS, "."}:
        raise ValueError(
            f"signs: expected one of {' '.join(OFFSETS)} . for each of {weights.shape[1]} heads, got {signs!r}"
        )
    choice = visible & (visible.sum(dim=-1, keepdim=True) > 1)
    total = weights.new_zeros(())
    for head, sign in enumerate(signs):
        if sign != ".":
            given, real = (each.diagonal(OFFSETS[sign], -2, -1) for each in (weights[:, head], choice))
            total = total + (F.relu(GUIDED - given) * real).sum() / real.sum().clamp(min=1)
    return total


def spread_penalty(
    trace: Trace, valid_lens: Int[Tensor, " batch"], targets: Bool[Tensor, "batch steps"]
) -> Float[Tensor, ""]:
    """Mean of `token_penalty` over the self-attentions of a differentiable trace.

    The mark of a source is its end, the last valid token; that of a target its beginning, the first.

    Args:
        targets: True where there is a target token.
    """
    maps = _self_attentions(trace, valid_lens, targets)
    return torch.stack([token_penalty(weights, visible, marks) for _, weights, visible, marks in maps]).mean()


def guides_penalty(
    trace: Trace, valid_lens: Int[Tensor, " batch"], targets: Bool[Tensor, "batch steps"], guides: Mapping[str, str]
) -> Float[Tensor, ""]:
    """Sum of `guide_penalty` over the self-attentions that have signs, by site, of a differentiable trace."""
    maps = {site: (weights, visible) for site, weights, visible, _ in _self_attentions(trace, valid_lens, targets)}
    if guides.keys() - maps.keys():
        raise ValueError(f"guides: expected sites of {', '.join(maps)}, got {', '.join(guides)}")
    return torch.stack([guide_penalty(*maps[site], signs) for site, signs in guides.items()]).sum()


def alignment_penalty(
    trace: Trace, targets: Bool[Tensor, "batch steps"], aligned: tuple[str, int], reader: tuple[str, int]
) -> Float[Tensor, ""]:
    """Mean of -sum_j r_(i+1,j) log w_ij over steps i: of the head that is `aligned`, w, from the `reader`'s weights, r.

    Step i + 1 reads the word that step i writes, and a head that looks where a word that is known comes from finds it
    more easily than one that must know it before (Chen 2020, section 3: Shift-Att). So the second learns from the
    first, whose weights are constants here; Garg et al. (2019, "Jointly Learning to Align and Translate with
    Transformer Models", section 4) teach one head of cross-attention with alignments that were computed beforehand.

    Args:
        targets: True where there is a target token.
        aligned: site and head.
        reader: the same.
    """
    calls = {call.site: call.graph_weights for call in trace}
    written, read = (calls[site][:, head] for site, head in (aligned, reader))
    both = (targets[:, :-1] & targets[:, 1:]).float()
    terms = -(read[:, 1:].detach() * written[:, :-1].clamp(min=1e-6).log()).sum(dim=-1)
    return (terms * both).sum() / both.sum().clamp(min=1)


def _self_attentions(
    trace: Trace, valid_lens: Int[Tensor, " batch"], targets: Bool[Tensor, "batch steps"]
) -> Iterator[tuple[str, Tensor, Tensor, Tensor]]:
    """Site, weights, what real queries see, and the marks' places, for each self-attention."""
    for call in trace:
        if call.kind != "self":
            continue
        weights = call.graph_weights
        n = weights.shape[-1]
        if call.site.startswith("encoder"):
            tokens = torch.arange(n, device=weights.device) < valid_lens[:, None]
            yield call.site, weights, tokens[:, None] & tokens[:, :, None], valid_lens - 1
        else:
            causal = torch.ones(n, n, dtype=torch.bool, device=weights.device).tril()
            yield call.site, weights, causal & targets[:, :, None], torch.zeros_like(valid_lens)


@torch.no_grad()
def clip_scores(model: EncoderDecoder, trace: Trace, max_range: float) -> None:
    """Scale W_q and W_k of each head whose scores differ by more than `max_range` in some row of the trace.

    Both by sqrt(max_range / range), so that scores shrink by the whole ratio.
    """
    ranges = {call.site: score_range(call.graph_weights) for call in trace}
    for site, layer in _layers(model):
        if site in ranges:
            factors = (max_range / ranges[site].clamp(min=1e-6)).clamp(max=1).sqrt()
            for matrix in (layer.W_q.weight, layer.W_k.weight):
                matrix.view(len(factors), -1, matrix.shape[1]).mul_(factors[:, None, None].to(matrix))


def score_range(weights: Float[Tensor, "batch heads queries keys"]) -> Float[Tensor, " heads"]:
    """Largest max_j s_j - min_j s_j over all rows, log(max_j w_j / min_j w_j) of the weights above zero."""
    low = weights.masked_fill(weights == 0, torch.inf).amin(dim=-1)
    high = weights.amax(dim=-1)
    rows = (high.log() - low.log()).masked_fill(high == 0, 0)
    return rows.amax(dim=(0, 2))


def _layers(model: EncoderDecoder) -> Iterable[tuple[str, MultiHeadAttention]]:
    encoder, decoder = model.encoder, model.decoder
    if not isinstance(encoder, TransformerEncoder) or not isinstance(decoder, TransformerDecoder):
        raise ValueError(f"expected a Transformer, got {type(encoder).__name__} and {type(decoder).__name__}")
    yield from ((f"encoder.{i}.self", block.attention) for i, block in enumerate(encoder.blocks))
    for i, block in enumerate(decoder.blocks):
        yield from ((f"decoder.{i}.self", block.attention1), (f"decoder.{i}.cross", block.attention2))
