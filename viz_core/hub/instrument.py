"""A model of transformers that is in memory already goes through our door, and back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from viz_core.hub.attention import ATTENTION_IMPLEMENTATION, register
from viz_core.hub.errors import HubError
from viz_core.hub.families import family_of
from viz_core.trace import find_sites, name_site, site_of


def instrument(model: nn.Module) -> tuple[str, ...]:
    """Make a loaded transformers model go through our attention, so that `record()` sees it; `restore` undoes it.

    The model computes what it did, with its own weights, whatever they are: fine-tuned, in training, quantised. It may
    lie within another (an adapter, a wrapper for several devices). What is set is the model's own: its configs and the
    names of its layers. Models built from one config object share it, and copies made meanwhile have it for good.
    `output_attentions` gives no maps until it is restored.
    To see what a model writes, record one pass over the finished text: a static cache is written over step by step.

    Returns:
        The sites that a recording of it may have, named as by `load_hub`; the same for a model instrumented before.

    Raises:
        ValueError: if it is no transformers model, has no attention, or computes it in code of its own; nothing is
            changed then.
    """
    parts = _transformers_parts(model)
    for part in parts:
        _check(part)
    sites = {layer: site for part in parts for layer, site in find_sites(part, _stack(part)).items()}
    if not sites:
        raise ValueError(f"instrument: expected a model with attention in layers, got {type(model).__name__}")
    with _changing:
        if model not in _before:
            register()
            configs = [config for part in parts for config in _configs(part)]
            _before[model] = _Before(
                [(config, config._attn_implementation) for config in configs],
                [(layer, site_of(layer)) for layer in sites],
            )
            for part in parts:
                part.set_attn_implementation(ATTENTION_IMPLEMENTATION)
            for layer, site in sites.items():
                name_site(layer, site)
                config: Any = getattr(layer, "config", None)  # not always one that its model knows of
                if config is not None:
                    config._attn_implementation_internal = ATTENTION_IMPLEMENTATION
    return tuple(dict.fromkeys(sites.values()))


def restore(model: nn.Module) -> None:
    """Put back what `instrument` changed: attention functions and names are what they were.

    Raises:
        ValueError: if the model is not instrumented.
    """
    with _changing:
        before = _before.pop(model, None)
        if before is None:
            raise ValueError(f"restore: expected a model that was instrumented, got {type(model).__name__}")
        before.put_back()


@dataclass(frozen=True)
class _Before:
    """What a model was like: the attention of its configs, the names of its layers."""

    implementations: list[tuple[Any, str | None]]
    sites: list[tuple[nn.Module, str | None]]

    def put_back(self) -> None:
        for config, implementation in self.implementations:
            config._attn_implementation_internal = implementation  # of this one alone: each has its own
        for layer, site in self.sites:
            if site is None:
                del layer.attention_site
            else:
                name_site(layer, site)


_before: WeakKeyDictionary[nn.Module, _Before] = WeakKeyDictionary()
_changing = threading.Lock()


def _transformers_parts(model: nn.Module) -> list[Any]:
    """The model itself, or the models of transformers that lie within it, none within another.

    Raises:
        ValueError: if there are none.
    """
    from transformers import PreTrainedModel

    def outermost(module: nn.Module) -> Iterator[nn.Module]:
        if isinstance(module, PreTrainedModel):
            yield module
        else:
            for child in module.children():
                yield from outermost(child)

    parts = list(outermost(model)) if isinstance(model, nn.Module) else []
    if not parts:
        raise ValueError(
            f"instrument: expected a model of transformers, got {type(model).__name__}; "
            "record(torch_calls=True) sees plain PyTorch"
        )
    return parts


def _check(part: Any) -> None:
    """Refuse a model whose attention cannot go through our door.

    Raises:
        ValueError: naming what stands in the way.
    """
    from transformers import PreTrainedModel

    for module in part.modules():
        if isinstance(module, PreTrainedModel) and find_sites(module) and not module._can_set_attn_implementation():
            raise ValueError(
                f"instrument: expected attention that can be set, got {type(module).__name__}, which computes it in "
                "code of its own; set_attn_implementation('eager') and output_attentions=True give its maps"
            )


def _stack(part: Any) -> str | None:
    """What the sites of its one stack begin with; None where its layers' places must tell."""
    try:
        return family_of(part.config, type(part).__name__, architecture=type(part).__name__).stack
    except HubError:  # speech, several inputs: a family that only its own code can run
        return None


def _configs(part: Any) -> Iterator[Any]:
    """Every config of a model and of what lies within it, each once."""
    seen: set[int] = set()
    waiting = [module.config for module in part.modules() if hasattr(module, "config")]
    while waiting:
        config = waiting.pop()
        if id(config) not in seen and hasattr(config, "_attn_implementation"):
            seen.add(id(config))
            yield config
            waiting += [sub for name in config.sub_configs if (sub := getattr(config, name, None)) is not None]
