"""The score of one query and one key, taken apart by what was written into the residual stream before."""

from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.circuits.logits import Name, hold_scale, norms_among, state_rows, stream_parts
from viz_core.circuits.probes import Probe, linear_parts, modules_outside, split_embedding
from viz_core.maps.score_products import score_products
from viz_core.trace import Trace
from viz_core.trace.arguments import index_range
from viz_core.trace.weights import text_positions


@dataclass(frozen=True, eq=False)
class ScoreAttribution:
    """A score as a sum of products: what each part wrote where the query is, times what each wrote where the key is.

    Attributes:
        query_parts, key_parts: names of the parts, as of `Part`: what it is, its layer and its head.
        terms: scale q_a . k_b of each pair of parts. A row's sum is what a part adds by the query, a column's sum what
            it adds by the key.
        cap: what a softcap changes; 0 without one.
        bias: what is added after that, a position bias; 0 without one.
        score: what the softmax is given.
    """

    query_parts: tuple[Name, ...]
    key_parts: tuple[Name, ...]
    terms: Float[Tensor, "query_parts key_parts"]
    cap: float
    bias: float
    score: float

    @property
    def total(self) -> float:
        """Sum of the terms, the change by the softcap and the bias."""
        return float(self.terms.sum()) + self.cap + self.bias


@torch.no_grad()
def score_attribution(
    model: nn.Module, trace: Trace, site: str, head: int, query: int, key: int, row: int = 0
) -> ScoreAttribution:
    """Return s = scale (sum_a q_a) . (sum_b k_b) + bias, by the parts a and b of the stream that the layer reads.

    q = W_q n(x) + b_q and k = W_k n(x) + b_k, rotated where positions rotate them, are linear in each part of x once
    the scale of the norm n is held at its value in this pass (Elhage 2021, "QK circuits"). Parts are each earlier head,
    feed-forward net, the embedding ("token" and "position" where a table of positions is added) and "constant": all
    biases. Keys of cross-attention are read from the encoder's stream. What is found of the layer is tried against the
    recorded query and key.

    Args:
        trace: of a pass of the model, recorded with values=True and states=True.
        head, query, key, row: numbers from 0, as in the recorded call.

    Raises:
        KeyError, IndexError: if there is no such site, head, query, key or row.
        ValueError: if the key is hidden from the query or is a learned sink, the head is edited, or queries and keys
            follow from the stream in another way: normalised after projection, rounded, or in code of the layer's own.
    """
    call, probe = trace[site], Probe(model, site)
    products, source = score_products(call, head, query, key, row), call.source
    if products.hidden:
        raise ValueError(f"key: expected one that query {query} may attend to, got {key}")
    row, head, query, key = (
        index_range(i, n, "row")[0] for i, n in zip((row, head, query, key), source.shape, strict=True)
    )
    token = key if probe.is_cross else key - (call.num_keys - call.num_queries)  # a learned sink is the first key
    if token < 0:
        raise ValueError(f"key: expected a token of this pass, got {key}")
    sides = []
    for what, index, place, mask in (
        ("queries", query, query, call.query_mask),
        ("keys", key, token, call.key_mask[:, key - token :]),
    ):
        vectors = getattr(source, what)[row]
        value = vectors[head // (call.num_heads // len(vectors)), index]
        position = int(text_positions(mask, mask.shape[-1]).expand(source.shape[0], -1)[row, place])
        sides.append(_side(model, trace, probe, what, head, row, (place, position), value))
    (query_parts, queries), (key_parts, keys) = sides
    terms = (products.scale * queries @ keys.T).cpu()
    return ScoreAttribution(tuple(query_parts), tuple(key_parts), terms, products.cap, products.bias, products.score)


def _side(
    model: nn.Module,
    trace: Trace,
    probe: Probe,
    what: str,
    head: int,
    row: int,
    places: tuple[int, int],
    value: Float[Tensor, " d_head"],
) -> tuple[list[Name], Float[Tensor, "parts d_head"]]:
    """Return what each part of the stream adds to a query or a key at a place, counted with and without padding."""
    is_memory = probe.is_cross and what == "keys"
    stack = "encoder" if is_memory else probe.name.partition(".")[0]
    if f"{stack}.embedding" not in trace.states or getattr(trace[probe.site].source, "values", None) is None:
        raise ValueError(f"trace: expected one of record(values=True, states=True) with the {stack}, got one without")
    embedding = trace.states[f"{stack}.embedding"]
    at = torch.tensor([[places[0]]], device=embedding.device).expand(len(embedding), 1)
    X = state_rows(embedding, at)
    start = {
        name: torch.zeros_like(X).index_put((torch.tensor([row], device=X.device),), part.to(X))
        for name, part in (split_embedding(model, stack, X[row, 0], places) or {}).items()
    }
    last = (f"{probe.name}.cross", f"{probe.name}.residual") if probe.is_cross else (f"{probe.name}.",)
    found, parts = stream_parts(model, trace, stack, at, () if is_memory else last, start)
    parts = parts[:, row, 0]
    norms: list[nn.Module] = [nn.Identity()]
    if is_memory:
        norms += norms_among((p for path, p in modules_outside(model, stack).items() if "emb" not in path), X)
    least, best = torch.inf, None
    for norm, position in product(norms, dict.fromkeys((0, *reversed(places)))):  # how the layer counts
        missed, added = linear_parts(probe.read(what, head, position), hold_scale(norm, parts), value)
        if added is not None and missed < least:
            least, best = missed, added
        if best is not None and least <= 1e-5:  # in half precision others may be nearer
            break
    if best is not None:
        return found, best
    raise ValueError(f"site {probe.site!r}: expected {what} that are linear in the stream after a norm, got others")
