"""Forward and backward passes in the device's fast precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from viz_core.runtime.device import fast_precision
from viz_core.trace import attention_weights
from viz_core.trace.pooling import pooled


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
