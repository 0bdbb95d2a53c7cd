"""Facts of a recorded run: claims about its maps, rows of a token, times of words, changes between models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.hub import HubCard, HubModel, HubRun, Maps, Positions, TimedWord
from viz_core.hub.kinds.dual_encoder import DualEncoder
from viz_core.hub.runs.sound_input import Head
from viz_core.hub.runs.token_text import Token
from viz_core.hub.word_timestamps import sound_weights
from viz_core.maps.fingerprints import future_weight, row_error, row_sum_error
from viz_core.maps.measures import scaled_rows, total_variation, weight_shares
from viz_core.models.anatomy import output_projection
from viz_core.runtime.hooks import may_end
from viz_core.trace import AttentionCall, site_of
from viz_core.trace.sites import is_linear_attention
from viz_core.trace.source import Projected
from viz_core.trace.weights import is_masked

CLAIMED_ROWS = 256
"""So many rows of each map are held to the claims."""

_CORNER = 32


def read_card(model: HubModel) -> HubCard:
    """What there is to know of a model."""
    return model.card


def position_schemes(model: HubModel) -> tuple[Positions, ...]:
    """Its position schemes, with the numbers it really uses."""
    return model.positions


def recorded_bytes(_model: HubModel, run: HubRun) -> int:
    """Bytes of the recording."""
    return run.trace.nbytes


def map_residuals(model: HubModel, run: HubRun) -> dict[str, float]:
    """Largest violation of each claim about the maps, by its name."""
    decoder = [call for call in run.trace if (call.stack, call.kind) == ("decoder", "self")]
    first = run.num_prompt_tokens if model.card.both_ways else 0
    return {
        "rows": row_sum_error(run.trace, CLAIMED_ROWS),
        "future": max((future_weight(call, CLAIMED_ROWS, first) for call in decoder), default=0.0),
    }


def broken_residuals(model: HubModel, run: HubRun) -> dict[str, float]:
    """The same for broken maps: rounded to 8 bits, and without a mask."""
    whole = [call for call in run.trace if not call.signed]
    seen = [call.weights(queries=slice(max(0, call.num_queries - CLAIMED_ROWS), None)) for call in whole]
    decoder = [call for call in whole if (call.stack, call.kind) == ("decoder", "self")]
    first = run.num_prompt_tokens if model.card.both_ways else 0
    unmasked = [
        AttentionCall(call.site, replace(call.source, mask=None, causal=False))
        for call in decoder
        if isinstance(call.source, Projected)
    ]
    return {
        "rows": max((float(row_error((weights * 255).round() / 255)) for weights in seen), default=0.0),
        "future": max((future_weight(call, CLAIMED_ROWS, first) for call in unmasked), default=0.0),
    }


def corner_of_map(
    _model: HubModel, run: HubRun, site: str, head: int, broken: str
) -> Float[np.ndarray, "queries keys"]:
    """The first 32 rows and columns of one head's map; `broken` is "", "eight-bits" or "no-mask"."""
    call = run.trace[site]
    if broken == "no-mask" and isinstance(call.source, Projected):
        call = AttentionCall(call.site, replace(call.source, mask=None, causal=False))
    size = slice(0, _CORNER)
    weights = call.weights(head=head, queries=size, keys=size)[0].numpy()
    return (weights * 255).round() / 255 if broken == "eight-bits" else weights


def row_of_heads(_model: HubModel, run: HubRun, site: str, token: int) -> Float[np.ndarray, "heads tokens"]:
    """Attention of a token by every head of a layer; of signed maps the share of its weight."""
    call = run.trace[site]
    weights = call.weights(queries=slice(token, token + 1))
    row = (weight_shares(weights) if call.signed else weights)[0, :, 0]
    return row[:, -len(run.tokens) :].numpy()  # a learned sink stands before them


@torch.inference_mode()
def likeness(model: HubModel, run: HubRun) -> tuple[Float[np.ndarray, " tokens"], float]:
    """Cosines of a text with a picture and its tokens, and how far the first is from the model's own logit."""
    engine = _dual_encoder(model)
    logit = float(engine.rerun(run.inputs).logits_per_image) - float(getattr(engine.model, "logit_bias", 0.0))
    scale = float(engine.model.logit_scale.exp())
    return run.output.numpy(), abs(scale * float(run.output[0]) - logit) / scale


@torch.inference_mode()
def pooling(model: HubModel, run: HubRun) -> Float[np.ndarray, "heads patches"] | None:
    """Weights of each head of the pooling over patches; None where a class token stands for the picture."""
    engine, site = _dual_encoder(model), "vision.head.cross"
    return run.trace[site].weights()[0, :, 0].numpy() if engine.pools_patches and site in run.trace else None


def _dual_encoder(model: HubModel) -> DualEncoder:
    if not isinstance(model.engine, DualEncoder):
        raise ValueError(f"model: expected one that compares a picture with a text, got {model.card.name}")
    return model.engine


def picture_shares(_model: HubModel, run: HubRun, token: int) -> Float[np.ndarray, "layers heads"]:
    """How much of a token's attention goes to the picture, by every head of the language model."""
    places = np.concatenate([grid.places.ravel() for grid in run.patches])
    layers = [call.site for call in run.trace if call.stack == "decoder"]
    return np.stack([row_of_heads(_model, run, site, token)[:, places].sum(axis=1) for site in layers])


class Window(NamedTuple):
    """How far queries of some layers may attend, in tokens before and after their own at most; numbers from 0."""

    stack: str
    left: int
    right: int
    layers: tuple[int, ...]


def windows(_model: HubModel, run: HubRun) -> tuple[Window, ...]:
    """The windows of self-attention in a run, by the masks that its layers used, whatever a setting says.

    A layer has none whose last token may attend to the first; () for pictures and sounds.
    """
    found = dict[tuple[str, int, int], list[int]]()
    if run.grid is not None or run.sound is not None:
        return ()
    for maps in run.maps:
        for call in maps.calls if maps.id.endswith("-self") and maps.frame is None else ():
            may_end()
            n = len(maps.text_keys)
            back = torch.arange(n)[:, None] - torch.arange(n)
            reach = back[_visible(call)[-n:, -n:]]
            if reach.numel() and int(reach.max()) < n - 1:
                found.setdefault((call.stack, int(reach.max()), -int(reach.min())), []).append(call.layer)
    return tuple(Window(*window, tuple(layers)) for window, layers in found.items())


def _visible(call: AttentionCall) -> Bool[Tensor, "queries keys"]:
    """Return which keys the first head's scores are not masked for; of whole maps which have a weight in any head."""
    if call.signed or not isinstance(call.source, Projected):
        return call.weights()[0].any(dim=0)
    return ~is_masked(call.source.scores(slice(0, 1), slice(None)))[0, 0].cpu()


def shows_contributions(model: HubModel, run: HubRun) -> bool:
    """Whether contributions of keys can be computed: values are recorded, and every output projection is found."""
    layers = [part for part in model.engine.model.modules() if site_of(part) and not is_linear_attention(part)]
    parts = {name for part in layers for name, _ in part.named_children()}
    if model.engine.holds_maps or parts & {"attn_sub_norm", "o_norm"}:  # norms between heads and projection
        return False
    try:
        for call in run.trace:
            output_projection(model.engine.model, call.site)
    except ValueError:
        return False
    return True


def over_time(
    _model: HubModel, run: HubRun, heads: Sequence[Head], spans: Sequence[tuple[int, int]]
) -> tuple[Float[Tensor, "spans keys"], Float[Tensor, " spans"]]:
    """Attention over time, mean over heads and the steps of each span, and its sum on the silence after the sound.

    Heads are a layer and a head of cross-attention; a span is the first step, and the one after the last.
    """
    maps = torch.stack([sound_weights(run, head, slice(None)) for head in heads]).mean(dim=0)
    weights = torch.stack([maps[slice(*span)].mean(dim=0) for span in spans])
    return weights, (1 - weights.sum(dim=1)).clamp(min=0)


def out_of_order(words: Sequence[TimedWord]) -> float:
    """The most seconds by which a word ends before it begins, or begins before the previous one; 0 if in order."""
    early = [word.start - word.end for word in words]
    back = [word.start - then.start for word, then in pairwise(words)]
    return max([0.0, *early, *back])


Apart = Literal["", "tokens", "sizes"]
"""Why maps of two models cannot be subtracted: other tokens, other numbers of layers or heads; "" where they can."""


class HeadChange(NamedTuple):
    """Total variation of a head's attention between both models, 0 to 1; of signed maps that of `scaled_rows`."""

    change: float
    layer: int
    head: int


@dataclass(frozen=True)
class KindCompared:
    """The heads of one kind of maps in both models."""

    id: str  # of the kind
    apart: Apart  # why they cannot be compared, if so
    heads: tuple[HeadChange, ...]  # every head, the most changed first; () where they cannot be compared


def compare_heads(first: HubRun, second: HubRun) -> tuple[KindCompared, ...]:
    """Every kind of maps that both models have: whether heads can be compared, and how much each changed.

    Layer and head are matched by their numbers, as for a model and what was fine-tuned from it. Of a decoder that only
    reads what it wrote itself, the tokens count that both begin with, the prompt at least: no token sees what follows.
    """
    others = {maps.id: maps for maps in second.maps}
    prompt = max(first.num_prompt_tokens, second.num_prompt_tokens)
    return tuple(_compare(maps, others[maps.id], prompt) for maps in first.maps if maps.id in others)


def _compare(first: Maps, second: Maps, prompt: int) -> KindCompared:
    shared = _shared(first.key_tokens, second.key_tokens)
    whole = shared == len(first.key_tokens) == len(second.key_tokens)
    if first.id == "decoder-self" and first.query_tokens == first.key_tokens and shared >= prompt:
        rows = shared
    elif whole and _shared(first.query_tokens, second.query_tokens) == len(first.query_tokens):
        rows = len(first.query_tokens)
    else:
        rows = 0
    apart = _apart(first, second, rows)
    if apart:
        return KindCompared(first.id, apart, ())
    changes = []
    for layer, calls in enumerate(zip(first.calls, second.calls, strict=True)):
        may_end()
        maps = [(call.weights(queries=slice(0, rows), keys=slice(0, shared))[0], call.signed) for call in calls]
        own, other = (scaled_rows(weights) if signed else weights for weights, signed in maps)
        changes += [HeadChange(change, layer, head) for head, change in enumerate(total_variation(own, other).tolist())]
    return KindCompared(first.id, "", tuple(sorted(changes, key=lambda one: (-one.change, one.layer, one.head))))


def _apart(first: Maps, second: Maps, rows: int) -> Apart:
    heads = [[call.num_heads for call in maps.calls] for maps in (first, second)]
    if not rows or len(second.query_tokens) < rows:
        return "tokens"
    return "" if heads[0] == heads[1] else "sizes"


def _shared(first: Sequence[Token], second: Sequence[Token]) -> int:
    """Number of tokens in the common prefix."""
    pairs = zip(first, second, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a.label != b.label), min(len(first), len(second)))
