"""Cross-entropy in blocks of logits, and forward and backward passes in the device's fast precision."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.overrides import TorchFunctionMode

from viz_core.runtime.device import fast_precision
from viz_core.trace import attention_weights
from viz_core.trace.outputs import pooled

_CHUNK = 512  # rows of logits at a time: 512 x 8,000 float32 are 16 MB, which stays in a processor's cache


def smoothed_cross_entropy(
    hidden: Float[Tensor, "tokens d"],
    weight: Float[Tensor, "vocab d"],
    bias: Float[Tensor, " vocab"],
    targets: Int[Tensor, " tokens"],
    smoothing: float,
) -> Float[Tensor, ""]:
    """Sum over tokens of -sum_v q_v log softmax(W h + b)_v with q = (1 - eps) one_hot + eps / vocab.

    Label smoothing is Szegedy 2016, section 7. Equal to torch's label-smoothed cross_entropy, summed,
    on W h + b; but the output layer is part of it and its gradient is taken chunk by chunk on the way
    forward, so logits for the whole batch never exist. Twice as fast on a CPU.
    """
    return _SmoothedCrossEntropy.apply(hidden, weight, bias, targets, smoothing)


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        low = hidden.dtype  # the products run in the precision the hidden states came in
        cast, cast_bias = weight.to(low), bias.to(low)
        loss = hidden.new_zeros((), dtype=torch.float32)
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(weight)
        grad_bias = torch.zeros_like(bias)
        for rows in torch.arange(len(targets), device=hidden.device).split(_CHUNK):
            span = slice(int(rows[0]), int(rows[-1]) + 1)
            h, target = hidden[span], targets[span, None]
            log_p = torch.addmm(cast_bias, h, cast.T).float().log_softmax(dim=-1)
            wanted = (1 - smoothing) * log_p.gather(1, target) + smoothing * log_p.mean(dim=-1, keepdim=True)
            loss -= wanted.sum()
            grad = log_p.exp_().sub_(smoothing / len(bias))  # d loss / d logits = p - q
            grad.scatter_add_(1, target, grad.new_full(target.shape, smoothing - 1))
            grad_bias += grad.sum(dim=0)
            grad = grad.to(low)
            grad_hidden[span] = grad @ cast
            grad_weight += (grad.T @ h).to(weight.dtype)
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        scale = grads[0]
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        return grad_hidden * scale.to(grad_hidden.dtype), grad_weight * scale, grad_bias * scale, None, None


def distilled_cross_entropy(
    log_p: Float[Tensor, "tokens vocab"],
    taught: Float[Tensor, "tokens vocab"],
    targets: Int[Tensor, " tokens"],
    share: float,
) -> Float[Tensor, ""]:
    """Sum over tokens of -sum_v q_v log p_v with q = share p_teacher + (1 - share) one_hot.

    Hinton, Vinyals and Dean (2015, "Distilling the Knowledge in a Neural Network"), at temperature 1.

    Args:
        log_p: log softmax of the student's scores.
        taught: the teacher's probabilities.
    """
    own = log_p.gather(1, targets[:, None])
    return -(share * (taught * log_p).sum() + (1 - share) * own.sum())


@contextmanager
def fast_pass(device: torch.device) -> Iterator[None]:
    """In this block, for this thread, products run in `fast_precision(device)`, and on a CPU attention by its formula.

    torch's fused kernel saves memory, but on a CPU its gradient in bfloat16 takes seven times as long as in float32:
    more than half of a vision transformer's training. Sequences to train on are short, so their weights may be kept.
    """
    low = fast_precision(device) == torch.bfloat16
    by_formula = _Formula() if low and device.type == "cpu" else nullcontext()
    with torch.autocast(device.type, torch.bfloat16, enabled=low), by_formula:
        yield


class _Formula(TorchFunctionMode):
    """Replaces torch's attention kernel by `attention_weights` and a product."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Replace calls of the kernel, and pass on any other call."""
        attends = func is F.scaled_dot_product_attention
        return (_attention if attends else func)(*args, **(kwargs or {}))


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,  # noqa: ARG001, fewer key heads are seen by their number
) -> Tensor:
    """The kernel's result, with weights in float32 and their product with the values in the values' precision."""
    boolean = attn_mask is not None and attn_mask.dtype == torch.bool
    mask, bias = (attn_mask, None) if boolean else (None, attn_mask)
    with torch.autocast(query.device.type, enabled=False):
        return pooled(attention_weights(query, key, mask, bias, is_causal, scale), value, dropout_p)
