"""Why a recording is empty, with the modules that may compute attention."""

import gc
import inspect
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from torch import nn

from viz_core.trace.trace import EMPTY_TRACE_HINT

_SOFTMAX = re.compile(r"softmax\(|\bscaled_dot_product_attention\(|\bMultiheadAttention\(|\bflex_attention\(")
_MOST = 4


def why_empty(torch_calls: bool | nn.Module) -> str:
    """Return why `record` saw no attention, and what may have computed some."""
    if isinstance(torch_calls, nn.Module):
        found = list(candidates(torch_calls))
        if not found:
            name = type(torch_calls).__name__
            return f"No code of {name} that can be read computes a softmax or calls torch's attention"
        return (
            f"A softmax in code of one's own is recorded where its layer is named and numbered, as in "
            f'layers.0.attention of a class with "Attention" in its name. These compute one: {_listed(found)}'
        )
    models = _not_instrumented()
    if models and not torch_calls:
        return f"instrument(model) was not called for {_listed(models)}. {EMPTY_TRACE_HINT}"
    return EMPTY_TRACE_HINT


def candidates(model: nn.Module) -> Iterator[str]:
    """Yield the paths and classes of the modules whose own code computes a softmax, or calls torch's attention."""
    for path, module in model.named_modules():
        if _attends(type(module)):  # type: ignore[arg-type]
            yield f"{path or 'the model itself'} ({type(module).__name__})"


@lru_cache(maxsize=256)
def _attends(kind: type[nn.Module]) -> bool:
    if kind.__module__.partition(".")[0] == "torch":
        return issubclass(kind, nn.MultiheadAttention)
    try:
        return _SOFTMAX.search(inspect.getsource(kind)) is not None
    except (OSError, TypeError):  # no source to read
        return False


def _not_instrumented() -> list[str]:
    """Return the classes of transformers' models in memory that are not instrumented, none of one within another."""
    transformers: Any = sys.modules.get("transformers")
    if transformers is None:
        return []
    models = [each for each in gc.get_objects() if issubclass(type(each), transformers.PreTrainedModel)]
    inner = {id(part) for model in models for part in model.modules() if part is not model}
    return list(dict.fromkeys(type(m).__name__ for m in models if id(m) not in inner and not _is_instrumented(m)))


def _is_instrumented(model: nn.Module) -> bool:
    return any(hasattr(part, "attention_before") for part in model.modules())


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
