"""The score of one query and one key, taken apart by what was written into the residual stream before."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.circuits.logits import Name, state_rows, stream_parts
from viz_core.circuits.outside import split_embedding
from viz_core.circuits.probes import Probe, linear_parts
from viz_core.maps.score_products import score_products
from viz_core.trace import Trace
from viz_core.trace.indexing import index_range
from viz_core.trace.padding import text_positions


@dataclass(frozen=True, eq=False)
class ScoreAttribution:
    """A score as a sum of products: what each part wrote where the query is, times what each wrote where the key is.

    Attributes:
        parts: names of the parts, as of `Part`: what it is, its layer and its head.
        terms: scale q_a . k_b of each pair of parts. A row's sum is what a part adds by the query, a column's sum what
            it adds by the key.
        cap: what a softcap changes; 0 without one.
        bias: what is added after that, a position bias; 0 without one.
        score: what the softmax is given.
    """

    parts: tuple[Name, ...]
    terms: Float[Tensor, "parts parts"]
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
    """Return s = scale (sum_a q_a) . (sum_b k_b) + bias, by the parts a and b of the stream before the layer.

    q = W_q n(x) + b_q and k = W_k n(x) + b_k, rotated where positions rotate them, are linear in each part of x once
    the scale of the norm n is held at its value in this pass (Elhage 2021, "QK circuits"). Parts are each earlier head,
    feed-forward net, the embedding ("token" and "position" where a table of positions is added) and "constant": all
    biases. What is found of the layer is tried against the recorded query and key.

    Args:
        trace: of a pass of the model, recorded with values=True and states=True.
        site: of self-attention.
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
    places = query, key - (call.num_keys - call.num_queries)  # of the tokens: a learned sink is the first key
    if min(places) < 0:
        raise ValueError(f"key: expected a token of this pass, got {key}")
    batch, stack = source.shape[0], call.stack
    if f"{stack}.embedding" not in trace.states or getattr(source, "values", None) is None:
        raise ValueError("trace: expected one of record(values=True, states=True), got one without")
    at = torch.tensor(places, device=probe.device).expand(batch, 2)
    positions = [int(text_positions(call.query_mask, call.num_queries).expand(batch, -1)[row, i]) for i in places]
    X = state_rows(trace.states[f"{stack}.embedding"], at)
    split = [split_embedding(model, stack, X[row, i], (places[i], positions[i])) for i in (0, 1)]
    found, parts = stream_parts(model, trace, stack, at, probe.name, _start(X, row, split))
    parts = parts[:, row]
    sides = []
    for i, what in enumerate(("queries", "keys")):
        vectors = getattr(source, what)[row]
        value = vectors[head // (call.num_heads // len(vectors)), (query, key)[i]]
        tried = dict.fromkeys((0, positions[i], places[i]))  # how the layer counts; without rotation all are alike
        sums = (linear_parts(probe.read(what, head, place), parts[:, i], value) for place in tried)
        if (side := next((each for each in sums if each is not None), None)) is None:
            raise ValueError(f"site {site!r}: expected {what} that are linear in the stream after a norm, got others")
        sides.append(side)
    terms = (products.scale * sides[0] @ sides[1].T).cpu()
    return ScoreAttribution(tuple(found), terms, products.cap, products.bias, products.score)


def _start(X: Float[Tensor, "batch 2 d"], row: int, split: list[dict[str, Tensor] | None]) -> dict[str, Tensor] | None:
    """Return what tables add to the embeddings of a query and a key of a row; None where it is not known of both."""
    query, key = split
    if query is None or key is None:
        return None
    start = {name: torch.zeros_like(X) for name in query}
    for name, part in start.items():
        part[row] = torch.stack([query[name], key[name]])
    return start
