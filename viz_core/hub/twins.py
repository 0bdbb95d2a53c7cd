"""Copies of a model that share its weights, for a pass beside the recorded one, which leaves nothing behind."""

import copy
import functools
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from viz_core.torch_internals import FastPathMode, only_mode, without_modes
from viz_core.trace.arguments import is_autocast_on, version
from viz_core.trace.intervene import without_edits
from viz_core.trace.passes import at_end_of_block
from viz_core.trace.record import no_recording
from viz_core.trace.states import LINEAR

_SMALL_BUFFER = 2**20  # numbers; larger ones are shared with the copy
_MOST_STORED = 2**27  # bytes of products, with what they are products of
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


def random_state() -> tuple[Tensor, Tensor | None]:
    """Return the state of torch's random numbers, on the processor and on a GPU that is in use."""
    on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
    return torch.get_rng_state(), torch.cuda.get_rng_state() if on_gpu else None


def _set_random_state(state: tuple[Tensor, Tensor | None]) -> None:
    if not torch.equal(torch.get_rng_state(), state[0]):
        torch.set_rng_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state(state[1])


@contextmanager
def same_randomness(state: tuple[Tensor, Tensor | None] | None = None) -> Iterator[None]:
    """A block without edits and gradients that leaves torch's random numbers as they were.

    Args:
        state: of the random numbers in the block; as they are unless given.
    """
    before = random_state()
    try:
        if state is not None:
            _set_random_state(state)
        with without_edits(), torch.no_grad():
            yield
    finally:
        _set_random_state(before)


@contextmanager
def undisturbed() -> Iterator[None]:
    """The same, without a recording."""
    with same_randomness(), no_recording(), without_modes():
        yield


_Weights = tuple[nn.Parameter | None, ...]


def _versions(given: Tensor, product: Tensor, weights: _Weights) -> tuple[int | None, ...]:
    return tuple(None if each is None else version(each) for each in (given, product, *weights))


class _Product(NamedTuple):
    given: Tensor
    product: Tensor
    weights: tuple[weakref.ref[nn.Parameter] | None, ...]  # offloading frees them, and others have their ids then
    versions: tuple[int | None, ...]


class Products(FastPathMode):
    """Products of a recorded pass with the model's weights, for the same pass without the recording.

    Where numbers, weights and settings are equal, so is the product: two thirds of a pass are not computed again. From
    the first difference on, everything is: a comparison of both passes finds the same as without this.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stored = dict[Hashable, deque[_Product]]()
        self._num_bytes = 0
        self._is_again = False
        self._compared: tuple[Tensor | None, Tensor | None, bool] = None, None, False
        self._random = random_state()
        self._thread: int | None = None

    def begin(self) -> None:
        """Begin the first pass, in a block that records."""
        self._thread = threading.get_ident()
        self.__enter__()
        block = at_end_of_block.get()
        assert block is not None
        block.callback(self.close)

    def end(self) -> None:
        """End the first pass, if it has not ended."""
        if self._thread == threading.get_ident():  # each thread has modes of its own
            self._thread = None
            self.__exit__()

    def close(self) -> None:
        """Leave nothing behind, also of a pass that Ctrl-C ended: no hook ran at its end."""
        self.end()
        self._stored.clear()
        self._compared = None, None, False

    @contextmanager
    def again(self) -> Iterator[None]:
        """A block without recording, edits and gradients for the second pass, with the random numbers of the first."""
        self._is_again = True
        try:
            with same_randomness(self._random), no_recording(), only_mode(self):
                yield
        finally:
            self._stored.clear()

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function of torch; in the second pass return a product of the first where it is the same."""
        place = None if kwargs or len(args) != 3 else LINEAR.get(func)
        if place is None or torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        given, weights = args[place], (*args[:place], *args[place + 1 :])
        if type(given) is not Tensor or not {nn.Parameter, type(None)}.issuperset(map(type, weights)):
            return func(*args)
        device = given.device.type
        key = func, *map(id, weights), torch.get_autocast_dtype(device) if is_autocast_on(device) else None
        if self._is_again:
            with without_modes():
                product = self._known(key, given, weights)
            return func(*args) if product is None else product
        product = func(*args)
        if device != "meta":
            with without_modes():
                self._store(key, given, product, weights)
        return product

    def _store(self, key: Hashable, given: Tensor, product: Tensor, weights: _Weights) -> None:
        num_bytes = self._num_bytes + given.nbytes + product.nbytes
        if num_bytes > _MOST_STORED or any(weight is not None and weight.is_inference() for weight in weights):
            return
        self._num_bytes = num_bytes
        # Of a tensor of its inference mode torch does not count changes.
        own = product.clone() if product.is_inference() else product.detach()
        references = tuple(None if weight is None else weakref.ref(weight) for weight in weights)
        self._stored.setdefault(key, deque()).append(_Product(given, own, references, _versions(given, own, weights)))

    def _known(self, key: Hashable, given: Tensor, weights: _Weights) -> Tensor | None:
        if not (found := self._stored.get(key)):
            return None
        earlier, product, references, versions = found.popleft()
        if versions != _versions(earlier, product, weights):
            return None
        if any(known is not None and known() is not weight for known, weight in zip(references, weights, strict=True)):
            return None
        if self._compared[0] is not earlier or self._compared[1] is not given:  # three projections have one input
            self._compared = earlier, given, earlier.dtype == given.dtype and torch.equal(earlier, given)
        if not self._compared[2]:
            return None
        return product if product.is_inference() else product.clone()  # the model may change it


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
