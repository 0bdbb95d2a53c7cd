"""Copies of a model that share its weights, for a pass beside the recorded one, which leaves nothing behind."""

import copy
import functools
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from viz_core.torch_internals.function_modes import without_modes
from viz_core.trace.intervene import without_edits
from viz_core.trace.record import no_recording

_SMALL_BUFFER = 2**20  # numbers; larger ones are shared with the copy
_CONSTANTS = frozenset({int, float, bool, str, type(None), torch.dtype, torch.device})
_CONTAINERS = frozenset({dict, OrderedDict, list, set})
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_FLAGS_OF_HOOKS = tuple(f"{name}{flag}" for name in _HOOKS for flag in ("_with_kwargs", "_always_called"))
_STATELESS = (nn.Linear, nn.Embedding, nn.LayerNorm, nn.Dropout)  # most layers of a model: their passes change nothing
_LIBRARIES = ("transformers", "accelerate", "peft", "torch", "viz_core")


def copied(given: Any) -> Any:
    """Return inputs whose caches are copies; tensors are shared."""
    if isinstance(given, Tensor):
        return given
    if type(given) is dict:
        return {name: copied(value) for name, value in given.items()}
    if type(given) in (tuple, list):
        return type(given)(copied(each) for each in given)
    return copy.deepcopy(given)


@contextmanager
def same_randomness() -> Iterator[None]:
    """A block without edits and gradients that leaves torch's random numbers as they were."""
    state = torch.get_rng_state()
    on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
    gpu = torch.cuda.get_rng_state() if on_gpu else None
    try:
        with without_edits(), torch.no_grad():
            yield
    finally:
        if not torch.equal(torch.get_rng_state(), state):
            torch.set_rng_state(state)
        if gpu is not None:
            torch.cuda.set_rng_state(gpu)


@contextmanager
def undisturbed() -> Iterator[None]:
    """The same, without a recording."""
    with same_randomness(), no_recording(), without_modes():
        yield


def shared_copy(
    model: nn.Module, hooks: frozenset[int] = frozenset(), keep_foreign: bool = False
) -> tuple[Any, dict[int, Any]]:
    """Return a copy of a model that shares its weights, without these hooks and those of a user; and what was copied.

    Small buffers are copied, as a pass may change them; the simplest layers of torch are shared.
    """
    parts, memo = list(model.modules()), dict[int, Any]()
    for part in parts:
        memo |= {id(weight): weight for weight in part._parameters.values()}
        for buffer in part._buffers.values():
            if buffer is not None:
                memo[id(buffer)] = buffer if buffer.numel() > _SMALL_BUFFER else buffer.detach().clone()

    def is_wanted(number: int, hook: Any) -> bool:
        library = (getattr(hook, "__module__", None) or type(hook).__module__).split(".")[0]
        return number not in hooks and (keep_foreign or library in _LIBRARIES)

    plain, others = list[nn.Module](), False
    for part in parts:
        if _is_stateless(part):
            memo[id(part)] = part
        elif not _copies_itself(type(part)):  # type: ignore[arg-type]
            memo[id(part)] = type(part).__new__(type(part))
            plain.append(part)
        else:
            others = True
    for part in plain:  # most attributes are constants or empty: `deepcopy` takes five times as long
        attributes = vars(memo[id(part)])
        for name, value in part.__getstate__().items():
            kind = type(value)
            if kind in _CONSTANTS:
                attributes[name] = value
            elif kind in _CONTAINERS and not value:
                attributes[name] = kind()
            elif name == "_modules":
                attributes[name] = {each: _copy_of(child, memo) for each, child in value.items()}
            elif name in _HOOKS:
                wanted = OrderedDict(each for each in value.items() if is_wanted(*each))
                attributes[name] = copy.deepcopy(wanted, memo) if wanted else wanted
            elif name in _FLAGS_OF_HOOKS:
                attributes[name] = value.copy()
            else:
                attributes[name] = copy.deepcopy(value, memo)
    twin = copy.deepcopy(model, memo)
    for registered in (vars(part)[name] for part in twin.modules() for name in _HOOKS) if others else ():
        for number, hook in list(registered.items()):
            if not is_wanted(number, hook):
                del registered[number]
    return twin, memo


def _is_stateless(part: nn.Module) -> bool:
    """Whether a module may be shared: a simple layer of torch without hooks."""
    own = vars(part)
    changeable = ("_modules", "_buffers", "_forward_hooks", "_forward_pre_hooks")
    return type(part) in _STATELESS and "forward" not in own and not any(own[name] for name in changeable)


@functools.lru_cache(maxsize=256)
def _copies_itself(kind: type[nn.Module]) -> bool:
    """Whether a class has a rule of its own for copies of its modules."""
    rules = ("__new__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
    changed = any(getattr(kind, name) is not getattr(nn.Module, name) for name in rules)
    return changed or hasattr(kind, "__deepcopy__") or hasattr(kind, "__slots__")


def _copy_of(child: nn.Module | None, memo: dict[int, Any]) -> Any:
    return memo[id(child)] if id(child) in memo else copy.deepcopy(child, memo)
