"""Record torch's flex_attention, whose scores are changed and whose keys are hidden by functions of the model's own."""

import functools
import inspect
import sys
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn

from viz_core.torch_internals.function_modes import without_fast_path_modes
from viz_core.trace.outputs import on_output
from viz_core.trace.source import Direct
from viz_core.trace.trace import current_trace
from viz_core.trace.weights import attention_weights

_wrapping = threading.Lock()
_wrappers = WeakSet[Callable[..., Any]]()


def wrap_flex_attention(model: nn.Module) -> None:
    """Wrap flex_attention, compiled or not, where the code of a model's modules has a global name for it.

    It compiles itself, so no mode sees its call. Outside of a recording the wrapper does what it did.
    """
    module = sys.modules.get("torch.nn.attention.flex_attention")
    if module is None:  # nobody calls it
        return
    with _wrapping:
        for kind in {type(part) for part in model.modules()}:
            names = getattr(inspect.unwrap(kind.forward), "__globals__", {})
            for name, value in list(names.items()):
                is_flex = isinstance(value, FunctionType) and inspect.unwrap(value) is module.flex_attention
                if is_flex and value not in _wrappers:  # a wrapper that was compiled is wrapped again
                    names[name] = _wrapped(value)
                    _wrappers.add(names[name])


def _wrapped(flex_attention: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(flex_attention)
    def run(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        score_mod: Callable[..., Tensor] | None = None,
        block_mask: Any = None,
        scale: float | None = None,
        enable_gqa: bool = False,
        **options: Any,
    ) -> Any:
        trace = None if torch.compiler.is_compiling() else current_trace()
        if trace is None or trace.torch_mode is None:
            return flex_attention(query, key, value, score_mod, block_mask, scale, enable_gqa, **options)
        mode: Any = trace.torch_mode  # a RecordingMode
        site = mode.site
        if trace.differentiable:
            raise ValueError(
                f"site {site!r}: expected no differentiable where flex_attention runs, a kernel of its own"
            )
        with without_fast_path_modes():
            result = flex_attention(query, key, value, score_mod, block_mask, scale, enable_gqa, **options)
            with torch.no_grad():
                edit = functools.partial(_changed_scores, score_mod, getattr(block_mask, "mask_mod", None))
                weights = attention_weights(query.detach(), key.detach(), scale=scale, edit=edit)
            mode.add(Direct(weights, value.detach() if trace.values else None), site)
            on_output(trace, result[0] if isinstance(result, tuple) else result)
        return result

    return run


def _changed_scores(
    score_mod: Callable[..., Tensor] | None, mask_mod: Callable[..., Tensor] | None, scores: Tensor
) -> Tensor:
    """Return scores as the functions change and hide them, which take one score's batch, head, query and key."""
    places = [torch.arange(size, device=scores.device) for size in scores.shape]
    if score_mod is not None:
        scores = _over_all(score_mod, (0,))(scores, *places)
    return scores if mask_mod is None else torch.where(_over_all(mask_mod, ())(*places), scores, -torch.inf)


def _over_all(function: Callable[..., Tensor], before: tuple[int, ...]) -> Callable[..., Tensor]:
    """Map a function of one place over all of them."""
    for axis in reversed(range(4)):
        function = torch.vmap(function, in_dims=(*before, *(0 if each == axis else None for each in range(4))))
    return function
