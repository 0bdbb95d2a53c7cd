"""Attention sinks: of texts on the first token, and of pictures among their patches."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.hub.model import HubModel
from viz_core.hub.runs.run import SINK, HubRun, Maps
from viz_core.lab.heads_off import perplexity, switchable
from viz_core.maps.contributions import value_lengths
from viz_core.maps.measures import weight_shares
from viz_core.models.anatomy import output_projection
from viz_core.runtime.hooks import may_end
from viz_core.trace import AttentionCall, Edit, intervene, knock_out, window

NUM_FIRST = 4
"""First tokens that are kept beside the window, as in Xiao 2023."""

LEAST_COUNTED = 8
"""Words that a perplexity is taken over, at least."""

_MUCH = 0.3  # of a head's weight on the first token: above it, the head is said to have a sink there
_MAX_OTHERS = 4


@dataclass(frozen=True, eq=False)
class Sinks:
    """Attention of the heads of one kind of maps to the first token."""

    shares: Float[np.ndarray, "layers heads"]  # the weight on it, 0 to 1, mean over the queries that come after it
    even: float  # what that would be if every query looked alike at all it may see
    # the same mean for a learned sink before all tokens; None where the model has none
    learned: Float[np.ndarray, "layers heads"] | None
    # |v_first| over the mean of |v_j| of all other tokens; None where a model's own code hides its values
    lengths: Float[np.ndarray, "layers heads"] | None

    @property
    def sinking(self) -> float:
        """The share of heads that have a sink on the first token: more than 0.3 of their weight (Gu 2025)."""
        return float((self.shares > _MUCH).mean())


@dataclass(frozen=True)
class Windowed:
    """Perplexities of the words of a text that come after the window has passed the first token."""

    full: float  # each word given all before it
    sliding: float  # given the last tokens alone
    with_first: float  # given the first four, and as many fewer of the last
    counted: int  # the words it was taken over


@dataclass(frozen=True)
class Hidden:
    """A token hidden from all others, and the change of the output."""

    place: int  # which token, from 0
    # of an encoder 1 - cos of the other tokens' last states, mean over them, 0 to 2; of a model that sorts half the sum
    # of what the probabilities of its classes moved, 0 to 1
    distance: float


def sinks_of(model: HubModel, run: HubRun, kind: str) -> Sinks:
    """Attention of the heads of a kind of maps ("decoder-self") to the first token, and the length of its value."""
    maps = next((each for each in run.maps if each.id == kind), None)
    if maps is None:
        raise ValueError(f"kind: expected one of {', '.join(each.id for each in run.maps)}, got {kind!r}")
    learned = int(maps.key_tokens[0] == SINK)
    count = len(maps.key_tokens) - learned
    shares = [_mean_weights(call, learned + 1, maps) for call in maps.calls]
    seen = range(2, count + 1) if kind == "decoder-self" and count > 1 else [count]
    return Sinks(
        _stacked([share[:, learned] for share in shares]),
        sum(1 / each for each in seen) / len(seen),
        _stacked([share[:, 0] for share in shares]) if learned else None,
        None if model.engine.holds_maps or count < 2 else _value_lengths(model, run, maps, learned),
    )


def longest_window(run: HubRun) -> int:
    """The widest window of the text given whose perplexity has enough words behind it."""
    return run.num_prompt_tokens - 1 - LEAST_COUNTED


@torch.inference_mode()
def windowed(model: HubModel, run: HubRun, size: int) -> Windowed:
    """Perplexity of the text a decoder was given with a window over the last tokens, and with the first four in it.

    Both windows hold as many tokens (Xiao 2023, table 1). All tokens are read through the window, in every layer, and
    positions stay what they are. A learned sink is not a token and stays visible. ValueError if the window does not fit
    the text, or a layer has no plain softmax: a convolution before linear attention reads beyond the window.
    """
    if any(call.signed for call in run.trace):
        raise ValueError(
            "model: expected a softmax in every layer, got linear attention, which a window does not limit"
        )
    if not NUM_FIRST < size <= longest_window(run):
        raise ValueError(f"size: expected {NUM_FIRST + 1} to {longest_window(run)}, got {size}")
    ways = (window(None, size), window(None, size - NUM_FIRST, first=NUM_FIRST))
    first = len(run.tokens) - len(run.output)
    rows = range(max(first, size), run.num_prompt_tokens - 1)
    targets = [token.id for token in run.tokens[rows.start + 1 : rows.stop + 1]]
    logits = [run.output, *(_edited(model, run, way) for way in ways)]
    full, sliding, with_first = (perplexity(each[rows.start - first : rows.stop - first], targets) for each in logits)
    return Windowed(full, sliding, with_first, len(rows))


@torch.inference_mode()
def hidden_tokens(model: HubModel, run: HubRun) -> tuple[Hidden, ...]:
    """The first token hidden from all others, then the last where it is a special one, then a few of the rest."""
    plain = [place for place, token in enumerate(run.tokens) if place and not token.special]
    steps = np.linspace(0, len(plain) - 1, min(_MAX_OTHERS, len(plain))).round().astype(int)
    last = len(run.tokens) - 1
    ends = [last] if last and run.tokens[last].special else []
    return tuple(
        Hidden(place, _output_change(model, run, place)) for place in (0, *ends, *(plain[step] for step in steps))
    )


def _mean_weights(call: AttentionCall, keys: int, maps: Maps) -> Float[np.ndarray, "heads keys"]:
    """The weight on the first keys, mean over the queries after the first, which alone could see no other token; of
    signed maps the share of a row's weight."""
    may_end()
    weights = weight_shares(call.weights()[0])[..., :keys] if call.signed else call.weights(keys=slice(0, keys))[0]
    rows = weights[:, 1:] if maps.id.endswith("-self") and weights.shape[1] > 1 else weights
    return rows.mean(dim=1).numpy()


def _value_lengths(model: HubModel, run: HubRun, maps: Maps, first: int) -> Float[np.ndarray, "layers heads"]:
    """|v_first| / mean |v_j| of every head, those of a group alike."""
    trace, found = model.recorded_again(run), []
    for call in maps.calls:
        lengths = trace[call.site].values[0, :, first:].float().norm(dim=-1).cpu()
        ratio = lengths[:, 0] / lengths[:, 1:].mean(dim=-1).clamp_min(torch.finfo(lengths.dtype).tiny)
        found.append(ratio.repeat_interleave(call.num_heads // len(ratio)).numpy())
    return _stacked(found)


def _stacked(layers: list[Float[np.ndarray, " heads"]]) -> Float[np.ndarray, "layers heads"]:
    """Layers of one height: where some have more heads than others, the first of each."""
    heads = min(len(layer) for layer in layers)
    return np.stack([layer[:heads] for layer in layers])


def _edited(model: HubModel, run: HubRun, *edits: Edit) -> Float[Tensor, "..."]:
    """The run's output with these edits in every self-attention."""
    may_end()
    sites = [site for site, _ in switchable(model, run) if site.endswith(".self")]
    with intervene(dict.fromkeys(sites, edits)):
        return model.rerun(run)


def _output_change(model: HubModel, run: HubRun, place: int) -> float:
    """Change of the output when this token is hidden from all others."""
    hide = partial(knock_out, None, key=place)
    after = _edited(model, run, hide(query=slice(0, place)), hide(query=slice(place + 1, None)))
    if model.card.head == "labels":
        return float((after.softmax(dim=-1) - run.output.softmax(dim=-1)).abs().sum() / 2)
    turned = 1 - F.cosine_similarity(run.output, after, dim=-1)
    return float(turned[torch.arange(len(turned)) != place].mean())


SINK_WEIGHT, SINK_LENGTH = 3.0, 0.5
"""A patch is a sink from 3 times the weight and up to half the length of the mean patch."""


@dataclass(frozen=True, eq=False)
class PictureRows:
    """A token's attention to the patches before it, by the heads of a layer."""

    weights: Float[np.ndarray, "heads tokens"]
    added: Float[np.ndarray, "heads tokens"]  # |a_ij W_o^h v_j| of each patch (Kobayashi 2020), 0 of all else
    attention: Float[np.ndarray, " tokens"]  # mean over heads and all later tokens, over that of the mean patch
    lengths: Float[np.ndarray, " tokens"]  # |W_o^h v_j|, mean over heads, over that of the mean patch
    sinks: tuple[int, ...]  # patches that draw much attention whatever the token, and add little


@torch.inference_mode()
def picture_rows(model: HubModel, run: HubRun, site: str, token: int) -> PictureRows:
    """A token's attention to the patches of a picture or video, what they add, and which of them are sinks.

    Weight alone is not evidence: models attend to the same few patches, often a corner, for every word (Kang 2025, "See
    What You Are Told"). Here a patch is a sink by `SINK_WEIGHT` and `SINK_LENGTH`, a convention of this app. ValueError
    if the run has no picture in a text, or the layer's output projection is not found.
    """
    if not run.patches:
        raise ValueError("run: expected one of a text with a picture or a video, got one without")
    places = np.concatenate([grid.places.ravel() for grid in run.patches])
    call, count = model.recorded_again(run)[site], len(run.tokens)
    first = min(int(places.max()) + 1, count - 1)
    rows = call.weights(queries=slice(first, None))[0, ..., -count:].abs()
    own = call.weights(queries=slice(token, token + 1))[0, :, 0, -count:]
    lengths = value_lengths(call, output_projection(model.network, site))[0, ..., -count:]
    lengths = lengths[:, token] if lengths.dim() == 3 else lengths  # of this query where the layer has a gate
    patch = torch.zeros(count).index_fill(0, torch.from_numpy(places), 1.0)
    attention, size = (
        each * patch / (each * patch).sum().clamp_min(1e-30) * len(places)
        for each in (rows.mean((0, 1)), lengths.mean(0))
    )
    sinks = ((attention >= SINK_WEIGHT) & (size <= SINK_LENGTH) & (patch > 0)).nonzero().flatten()
    added = own.abs() * lengths * patch
    return PictureRows(own.numpy(), added.numpy(), attention.numpy(), size.numpy(), tuple(sinks.tolist()))
