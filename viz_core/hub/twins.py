"""Copies of a model that share its weights, for a pass beside the recorded one, which leaves nothing behind."""

import copy
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
_CONSTANTS = (int, float, bool, str, type(None), torch.dtype, torch.device)
_CONTAINERS = (dict, OrderedDict, list, set)
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
    parts = list(model.modules())
    memo: dict[int, Any] = {id(weight): weight for part in parts for weight in part._parameters.values()}
    for buffer in (each for part in parts for each in part._buffers.values() if each is not None):
        memo[id(buffer)] = buffer if buffer.numel() > _SMALL_BUFFER else buffer.detach().clone()
    memo |= {id(part): part for part in parts if _is_stateless(part)}
    special = {kind for kind in {type(part) for part in parts} if _copies_itself(kind)}
    plain = [part for part in parts if id(part) not in memo and type(part) not in special]
    memo |= {id(part): type(part).__new__(type(part)) for part in plain}
    for part in plain:  # most attributes are constants or empty: `deepcopy` takes five times as long
        state = part.__getstate__()
        memo[id(part)].__dict__.update({name: _copy_of(value, memo) for name, value in state.items()})
    twin = copy.deepcopy(model, memo)
    for part in twin.modules():
        for registered in (part._forward_hooks, part._forward_pre_hooks):
            for number, hook in list(registered.items()):
                library = (getattr(hook, "__module__", None) or type(hook).__module__).split(".")[0]
                if number in hooks or not (keep_foreign or library in _LIBRARIES):
                    del registered[number]
    return twin, memo


def _is_stateless(part: nn.Module) -> bool:
    """Whether a module may be shared: a simple layer of torch without hooks."""
    own = vars(part)
    changeable = ("_modules", "_buffers", "_forward_hooks", "_forward_pre_hooks")
    return type(part) in _STATELESS and "forward" not in own and not any(own[name] for name in changeable)


def _copies_itself(kind: type[nn.Module]) -> bool:
    """Whether a class has a rule of its own for copies of its modules."""
    rules = ("__new__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
    changed = any(getattr(kind, name) is not getattr(nn.Module, name) for name in rules)
    return changed or hasattr(kind, "__deepcopy__") or hasattr(kind, "__slots__")


def _copy_of(value: Any, memo: dict[int, Any]) -> Any:
    if type(value) in _CONSTANTS:
        return value
    return type(value)() if type(value) in _CONTAINERS and not value else copy.deepcopy(value, memo)
