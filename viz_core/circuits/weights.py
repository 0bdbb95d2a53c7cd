"""QK and OV circuits: what a head's matrices read from the residual stream, compare and write."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.circuits.logits import layers_by_name
from viz_core.circuits.probes import Probe, direct_logits, linear_map, token_table
from viz_core.models.anatomy import output_projection
from viz_core.trace import AttentionCall, off
from viz_core.trace.edits import is_nonnegative


@dataclass(frozen=True, eq=False)
class Circuit:
    """A matrix of low rank from the residual stream to itself: left @ right = U diag(singular_values) V^T.

    Attributes:
        kind: "OV": of a token's stream x, left @ right @ x is written; "QK": x @ left @ right @ y is the score of a
            query x and a key y.
        U, V: columns are the directions, of length 1, that are written and read (OV), or of queries and keys (QK).
    """

    site: str
    head: int
    kind: str
    left: Float[Tensor, "d rank"]
    right: Float[Tensor, "rank d"]
    U: Float[Tensor, "d rank"]
    singular_values: Float[Tensor, " rank"]
    V: Float[Tensor, "d rank"]


@torch.no_grad()
def ov_circuit(model: nn.Module, site: str, head: int) -> Circuit:
    """Return W_o^h W_v^h: what a head writes into the stream of a token that it attends to (Elhage 2021, "OV circuit").

    A norm before the layer is part of it, its gain and its mean, but for the division by the token's own standard
    deviation or length; biases are left out. Grouped queries, fused or adapted projections and layer scales are handled
    by what the layer itself computes. Cross-attention reads the encoder's output.

    Raises:
        ValueError: if there is no such site or head, or what the head writes is not linear after a norm: normalised
            once more, gated, quantised with its inputs, or beside a learned sink.
    """
    probe, call, width = _probe(model, site, head)
    others = [i for i in range(call.num_heads) if i != head]
    edits = {site: off(*others)} if others else {}

    def both(X: Tensor) -> Tensor:
        trace = probe.run(X, edits=edits)
        values = trace[site].values
        written = trace.states.get(f"{probe.name}.{'cross' if probe.is_cross else 'attention'}")
        if written is None:
            raise ValueError("expected a layer whose attention is added to the stream by itself, in float64")
        return torch.cat([values[:, head // (call.num_heads // values.shape[1]), 0], written[:, 0]], dim=-1)

    maps = _linear(both, width, site, head)
    right, whole = maps[:-width], maps[-width:]
    return _circuit(site, head, "OV", whole @ torch.linalg.pinv(right), right)


@torch.no_grad()
def qk_circuit(model: nn.Module, site: str, head: int) -> Circuit:
    """Return scale W_q^h^T W_k^h: the score of a query and a key at the same position (Elhage 2021, "QK circuit").

    Norms and biases as in `ov_circuit`. Rotary positions rotate queries and keys before they meet: at another distance
    the matrix is another. A position bias and a softcap come after it.

    Raises:
        ValueError: as `ov_circuit`; if queries or keys are normalised after their projection.
    """
    probe, call, width = _probe(model, site, head)
    scale = call.source.scale  # type: ignore[attr-defined]
    queries, keys = (_linear(probe.read(what, head), width, site, head) for what in ("queries", "keys"))
    return _circuit(site, head, "QK", scale * queries.T, keys)


def direction_tokens(
    model: nn.Module, circuit: Circuit, direction: int, count: int = 10, sign: int = 1
) -> tuple[Int[Tensor, " count"], Int[Tensor, " count"]]:
    """Return the tokens that a direction reads and those whose logits it raises most; of QK, those of queries and keys.

    What is read is the token's embedding, of the encoder in cross-attention, as if no layer had come before; what is
    written goes through the last norm, whose scale is left out, to the output layer.

    Args:
        direction: its number, from 0 for the largest singular value.
        sign: 1, or -1 for the opposite direction: a direction and its opposite are one.

    Returns:
        Ids of `count` tokens each, the strongest first: words by the model's tokenizer.

    Raises:
        ValueError: if the model has no table of tokens of this width, no encoder for cross-attention, or more than a
            norm before its output layer.
    """
    u, v = circuit.U[:, direction] * sign, circuit.V[:, direction] * sign
    width, stack = len(circuit.left), circuit.site.partition(".")[0]
    is_cross = circuit.site.endswith("cross")
    if is_cross and not any(name.startswith("encoder.") for name in layers_by_name(model)):
        raise ValueError(f"model: expected the encoder that {circuit.site!r} reads, got none")

    def strongest(direction: Tensor, table: str) -> Tensor:
        E = token_table(model, width, table).float().cpu()
        sizes = E.square().mean(dim=-1, keepdim=True).sqrt().clamp_min(1e-12)
        return (E / sizes @ direction).topk(count).indices

    keys = strongest(v, "encoder" if is_cross else stack)
    if circuit.kind == "QK":
        return strongest(u, stack), keys
    vocab = len(token_table(model, width, stack))
    return keys, direct_logits(model, stack, vocab, u).topk(count).indices


def _circuit(site: str, head: int, kind: str, left: Tensor, right: Tensor) -> Circuit:
    """Return a circuit with its singular values, found from small matrices: left = Q_1 R_1 and right^T = Q_2 R_2."""
    (Q1, R1), (Q2, R2) = torch.linalg.qr(left), torch.linalg.qr(right.T)
    U, S, Vh = torch.linalg.svd(R1 @ R2.T)
    return Circuit(site, head, kind, *(each.float() for each in (left, right, Q1 @ U, S, Q2 @ Vh.T)))


def _linear(function: Callable[[Tensor], Tensor], width: int, site: str, head: int) -> Tensor:
    try:
        return linear_map(function, width)
    except ValueError as error:
        raise ValueError(f"site {site!r}, head {head}: {error}") from None


def _probe(model: nn.Module, site: str, head: int) -> tuple[Probe, AttentionCall, int]:
    """Return a layer's probe, its call for a vector of zeros and the width; ValueError if there is no such head."""
    probe, width = Probe(model, site), int(output_projection(model, site).out_features)
    call = probe.run(torch.zeros(1, width))[site]
    if not is_nonnegative(head) or head >= call.num_heads:
        raise ValueError(f"head: expected 0 to {call.num_heads - 1}, got {head!r}")
    return probe, call, width
