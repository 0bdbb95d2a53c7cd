"""Gradient-weighted relevance of tokens to an answer."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace import Trace
from viz_core.trace.arguments import check_tensors


def gradient_relevance(
    weights: Sequence[Float[Tensor, "heads n n"]], gradients: Sequence[Float[Tensor, "heads n n"]]
) -> Float[Tensor, "n n"]:
    """Relevance of each token (columns) to each token of the last layer (rows), for the answer differentiated.

    R <- R + A R for each layer, first to last, from R = I, with A = mean over heads of (dy/dW * W)^+
    (Chefer, Gur and Wolf 2021, "Generic Attention-model Explainability", equations 5 and 6). Only weights that
    raise the answer y count.

    Args:
        weights: attention weights of each layer, first layer first.
        gradients: derivative of the answer by each of them.

    Raises:
        ValueError: if there is no layer, or weights and gradients differ in number or shape.
    """
    check_tensors(**{f"weights[{number}]": weight for number, weight in enumerate(weights)})
    check_tensors(**{f"gradients[{number}]": gradient for number, gradient in enumerate(gradients)})
    shapes = [tuple(w.shape) for w in weights]
    if not shapes or shapes != [tuple(g.shape) for g in gradients]:
        raise ValueError(
            f"expected weights and gradients of one or more layers, alike in shape, got {shapes} and "
            f"{[tuple(g.shape) for g in gradients]}"
        )
    relevance = torch.eye(shapes[0][-1], dtype=weights[0].dtype, device=weights[0].device)
    for weight, gradient in zip(weights, gradients, strict=True):
        step = (gradient * weight).clamp_min(0.0).mean(dim=0)
        relevance = relevance + step @ relevance
    return relevance


def relevance_maps(trace: Trace, answer: Float[Tensor, ""]) -> Float[Tensor, "n n"]:
    """`gradient_relevance` of one picture, from a trace recorded with its graph.

    Args:
        trace: of `record(differentiable=True)`, with self-attention calls alone, a batch of one.
        answer: the number to explain, such as the logit of a class, computed in that block.

    Raises:
        ValueError: if the trace kept no graph, or holds a batch of several.
    """
    weights = [call.graph_weights for call in trace]
    if any(w.shape[0] != 1 for w in weights):
        raise ValueError(f"trace: expected a batch of one, got {max(w.shape[0] for w in weights)}")
    gradients = torch.autograd.grad(answer, weights)
    return gradient_relevance([w.detach()[0].cpu() for w in weights], [g[0].cpu() for g in gradients])
