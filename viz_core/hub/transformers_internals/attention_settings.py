"""Which attention a model of transformers uses: settings of its configs, masks, and what its code calls."""

import re
from collections.abc import Callable, Iterator
from typing import Any

CALLS_INTERFACE = re.compile("ALL_ATTENTION_FUNCTIONS")
"""Found in the code of layers that hand their attention to transformers' interface."""


def mask_functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions that make masks for fused and for eager attention."""
    from transformers.masking_utils import eager_mask, sdpa_mask

    return sdpa_mask, eager_mask


def has_implementation(config: Any) -> bool:
    """Whether a config chooses an implementation of attention."""
    return hasattr(config, "_attn_implementation")


def implementation(config: Any) -> str | None:
    """The implementation of attention that a config chooses."""
    chosen: str | None = config._attn_implementation
    return chosen


def set_implementation(config: Any, name: str | None) -> None:
    """Choose an implementation for this config alone: its public setter changes nested configs as well."""
    config._attn_implementation_internal = name


def nested_configs(config: Any) -> Iterator[Any]:
    """The configs within a config."""
    return (nested for name in config.sub_configs if (nested := getattr(config, name, None)) is not None)


def supports_fused(model: Any) -> bool:
    """Whether a model declares support for torch's fused attention."""
    return bool(model._supports_sdpa)
