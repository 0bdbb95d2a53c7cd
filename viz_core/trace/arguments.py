"""Checks of arguments, indices and shapes, and the copies and casts of tensors that a recording refers to."""

import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any, SupportsIndex, TypeAlias, TypeGuard

import numpy as np
import torch
from torch import Tensor

from viz_core.torch_internals import declare, is_transformed

declare("torch:Tensor._version", "noticing changes in place after a recording")
declare("torch.nn.attention.bias:CausalBias._materialize", "recording torch's CausalBias")


def version(tensor: Tensor) -> int | None:
    """Return how often a tensor was changed in place, through views too; None where torch does not count.

    Torch does not count in its inference mode, and misses `.data` and numpy's view.
    """
    return None if tensor.is_inference() else getattr(tensor, "_version", None)


def materialized(mask: Tensor, device: torch.device) -> Tensor:
    """Return a mask whose numbers exist: torch's CausalBias stands for one that is made when it is used."""
    make = getattr(mask, "_materialize", None)
    return mask if make is None else make(device)


def snapshot(keys: Tensor, queries: Tensor) -> Tensor:
    """Return keys or values (batch, heads, keys, d) detached: a copy where they may be a cache that is written over.

    Torch counts how often a tensor was changed in place. In its inference mode it does not: there, tensors longer than
    the queries, and parts of longer tensors, are taken for caches.
    """
    own = keys.detach()
    if is_transformed(own):  # to be refused, with its site, by `Trace.add`
        return own
    if own.is_inference():
        is_part = own.untyped_storage().nbytes() > own.nbytes
        return own.clone() if is_part or own.shape[2] > queries.shape[2] else own
    return own.clone() if version(own) else own


def with_gradient(weights: Tensor) -> Tensor:
    """Return weights for which gradients can be computed: a leaf if nothing in the graph leads to them."""
    return weights.requires_grad_() if torch.is_grad_enabled() and not weights.requires_grad else weights


def is_autocast_on(device: str) -> bool:
    """Whether autocast is on for a type of device; never where torch has none, as on "meta"."""
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def cast_inputs(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors, cast as by `F.scaled_dot_product_attention` where autocast is on.

    Rotary positions leave queries and keys in float32 beside values in bfloat16, which only autocast allows. What is
    no tensor is left to the checks of the caller.
    """
    device = next((tensor.device.type for tensor in tensors if isinstance(tensor, Tensor)), "cpu")
    if not is_autocast_on(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    casts = (torch.float32, torch.float16, torch.bfloat16)  # float64 is never cast
    return tuple(tensor.to(dtype) if getattr(tensor, "dtype", None) in casts else tensor for tensor in tensors)


def without_autocast(tensors: Iterable[Tensor]) -> torch.autocast:
    """Return a block without autocast, in which maps are computed in float32; ValueError on the device meta."""
    device = next((tensor.device.type for tensor in tensors), "cpu")
    if device == "meta":
        raise ValueError("expected a recording with numbers, got one on the device meta, which has shapes alone")
    return torch.autocast(device if torch.amp.is_autocast_available(device) else "cpu", enabled=False)


_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def described(thing: object) -> str:
    """Return an argument for an error: a tensor by type and shape, a number as it is, anything else by its class."""
    if isinstance(thing, Tensor):
        return f"{str(thing.dtype).removeprefix('torch.')} of shape {tuple(thing.shape)}"
    return f"{type(thing).__name__} {thing}" if isinstance(thing, Real) else type(thing).__name__


def check_tensors(**named: object) -> None:
    """Raise ValueError unless all are floating-point tensors of one type and device."""
    first: Tensor | None = None
    alike = True
    for name, thing in named.items():
        if not isinstance(thing, Tensor) or not thing.is_floating_point():
            came = thing.dtype if isinstance(thing, Tensor) else type(thing).__name__
            raise ValueError(f"{name}: expected a floating-point tensor, got {came}")
        first = thing if first is None else first
        alike = alike and thing.dtype == first.dtype and thing.device == first.device
    if not alike:  # the fast way first: this runs a thousand times for each decoded sentence
        _check_alike(named, "dtype")
        _check_alike(named, "device")


def check_device(**named: object) -> None:
    """Raise ValueError if tensors are on several devices; other arguments are ignored."""
    devices = [thing.device for thing in named.values() if isinstance(thing, Tensor)]
    if len(devices) > 1 and devices.count(devices[0]) < len(devices):
        _check_alike(named, "device")


def check_like(name: str, X: Tensor, weight: object) -> None:
    """Raise ValueError unless X has the type and device of a layer's weights.

    Types may differ under autocast and where the weights are quantised. Weights on the meta device are ignored.
    """
    if not isinstance(X, Tensor) or not X.is_floating_point():
        raise ValueError(f"{name}: expected a floating-point tensor, got {described(X)}")
    if not isinstance(weight, Tensor) or not weight.is_floating_point() or weight.is_meta:
        return
    if X.dtype != weight.dtype and not is_autocast_on(X.device.type):
        raise ValueError(f"{name}: expected {weight.dtype} as the layer's weights are, got {X.dtype}")
    if X.device != weight.device:
        raise ValueError(f"{name}: expected a tensor on {weight.device} as the layer's weights are, got {X.device}")


def check_axes(form: str, **named: Tensor) -> None:
    """Raise ValueError unless tensors have the axes of a form such as "batch n width"; "..." is any number of axes."""
    names = form.split()
    for name, tensor in named.items():
        fits = tensor.dim() >= len(names) - 1 if "..." in names else tensor.dim() == len(names)
        if not fits:
            raise ValueError(f"{name}: expected ({', '.join(names)}), got shape {tuple(tensor.shape)}")


def check_integers(**named: object) -> None:
    """Raise ValueError unless all are tensors of integers."""
    for name, thing in named.items():
        if not isinstance(thing, Tensor) or thing.dtype not in _WHOLE:
            raise ValueError(f"{name}: expected a tensor of integers, got {described(thing)}")


def check_whole(least: int = 1, **named: object) -> None:
    """Raise ValueError unless all are integers, Python's or numpy's, of at least `least`."""
    for name, number in named.items():
        if not is_whole(number):
            raise ValueError(f"{name}: expected a whole number, got {described(number)}")
        if number < least:  # type: ignore[operator]
            raise ValueError(f"{name}: expected at least {least}, got {number}")


def check_number(least: float = -math.inf, most: float = math.inf, **named: object) -> None:
    """Raise ValueError unless all are finite numbers from `least` to `most`."""
    bounds = {
        (False, False): "a finite number",
        (True, False): f"a finite number, at least {least:g}",
        (True, True): f"a number from {least:g} to {most:g}",
    }[math.isfinite(least), math.isfinite(most)]
    for name, number in named.items():
        if not is_number(number) or not least <= number <= most:  # type: ignore[operator]
            came = number if isinstance(number, Real) else described(number)
            raise ValueError(f"{name}: expected {bounds}, got {came}")


def check_positive_number(**named: object) -> None:
    """Raise ValueError unless all are finite numbers above 0."""
    for name, number in named.items():
        if not is_number(number) or not number > 0:  # type: ignore[operator]
            came = number if isinstance(number, Real) else described(number)
            raise ValueError(f"{name}: expected a positive number, got {came}")


def is_whole(number: object) -> bool:
    """Whether it is an integer, Python's or numpy's; no boolean and no tensor."""
    if isinstance(number, bool):
        return False
    return isinstance(number, int | torch.SymInt) or (isinstance(number, Real) and hasattr(number, "__index__"))


def is_number(number: object) -> bool:
    """Whether it is a finite number, Python's or numpy's; no boolean and no tensor."""
    if isinstance(number, bool):
        return False
    return isinstance(number, torch.SymInt | torch.SymFloat) or (isinstance(number, Real) and math.isfinite(number))


def can_be_read(tensor: Tensor) -> bool:
    """Whether a tensor's numbers can be read: there are some, and torch is not tracing."""
    if torch.compiler.is_compiling() or not tensor.numel() or tensor.is_meta:
        return False
    return not is_transformed(tensor)


def _check_alike(named: dict[str, object], what: str) -> None:
    tensors = {name: thing for name, thing in named.items() if isinstance(thing, Tensor)}
    if len({getattr(tensor, what) for tensor in tensors.values()}) > 1:
        came = ", ".join(f"{name} {getattr(tensor, what)}" for name, tensor in tensors.items())
        raise ValueError(f"expected {' and '.join(tensors)} of one {what}, got {came}")


Index: TypeAlias = SupportsIndex | slice | range | None


def is_index(index: Any) -> TypeGuard[SupportsIndex]:
    """Whether it is one integer: Python's, numpy's or a tensor's; no boolean."""
    if isinstance(index, bool | np.bool) or getattr(index, "dtype", None) == torch.bool:
        return False
    try:
        operator.index(index)
    except TypeError:  # raised also by arrays of several numbers or of floats
        return False
    return True


def index_range(index: Index, size: int, name: str) -> range:
    """Return the range, from 0 to size - 1 and ascending, that an index selects; a number is a range of one.

    IndexError if the index is out of range, is not an index, or descends.
    """
    if index is None:
        return range(size)
    if is_index(index):
        place = operator.index(index)
        if not -size <= place < size:
            raise IndexError(f"{name}: expected 0 to {size - 1}, got {place}")
        return range(place % size, place % size + 1)
    if isinstance(index, slice):
        if not all(part is None or is_index(part) for part in (index.start, index.stop, index.step)):
            raise IndexError(f"{name}: expected a slice of whole numbers, got {index}")
        if index.step is not None and operator.index(index.step) < 1:
            raise IndexError(f"{name}: expected places in order, got step {index.step}")
        found = range(*index.indices(size))
    elif isinstance(index, range):
        found = index
        if len(found) and not (0 <= found[0] < size and 0 <= found[-1] < size):
            raise IndexError(f"{name}: expected places from 0 to {size - 1}, got {index}")
    else:
        raise IndexError(f"{name}: expected a number, a slice or a range, got {type(index).__name__}")
    if found.step < 0:
        raise IndexError(f"{name}: expected places in order, got step {found.step}")
    return found if len(found) else range(0)


def check_scores(
    queries: Tensor,
    keys: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    softcap: float | None,
    scale: float | None = None,
) -> None:
    """Raise ValueError unless queries, keys, mask, bias, softcap and scale fit together."""
    check_tensors(queries=queries, keys=keys)
    if queries.dim() != 4 or keys.dim() != 4:
        shapes = [tuple(queries.shape), tuple(keys.shape)]
        raise ValueError(f"expected queries and keys of shape (batch, heads, n, width), got {shapes}")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"expected queries and keys of one width, got {queries.shape[-1]} and {keys.shape[-1]}")
    if queries.shape[0] != keys.shape[0]:
        raise ValueError(f"expected queries and keys of one batch size, got {queries.shape[0]} and {keys.shape[0]}")
    if queries.shape[1] % keys.shape[1] if keys.shape[1] else queries.shape[1]:
        raise ValueError(f"expected key heads to divide query heads, got {keys.shape[1]} and {queries.shape[1]}")
    check_mask_and_bias(mask, bias, (*queries.shape[:3], keys.shape[2]))
    check_device(queries=queries, mask=mask, bias=bias)
    if softcap is not None:
        check_positive_number(softcap=softcap)
    if scale is not None:
        check_number(scale=scale)


def check_mask_and_bias(mask: Tensor | None, bias: Tensor | None, scores: tuple[int, int, int, int]) -> None:
    """Raise ValueError unless mask and bias are for scores of this batch, heads, queries and keys."""
    if mask is not None and (not isinstance(mask, Tensor) or mask.dtype != torch.bool):
        came = described(mask)
        raise ValueError(f"mask: expected booleans, True where a query may look, got {came}; numbers are a bias")
    if bias is not None and (not isinstance(bias, Tensor) or not bias.is_floating_point()):
        came = described(bias)
        raise ValueError(f"bias: expected floating-point numbers to add to scores, got {came}; booleans are a mask")
    for name, tensor in (("mask", mask), ("bias", bias)):
        if tensor is not None and not _broadcasts(tuple(tensor.shape), scores):
            raise ValueError(f"{name}: expected a shape that broadcasts to {scores}, got {tuple(tensor.shape)}")


def check_values(keys: Tensor, values: Tensor) -> None:
    """Raise ValueError unless there is one value for each key."""
    check_tensors(keys=keys, values=values)
    check_axes("batch heads n width", values=values)
    if keys.shape[:3] != values.shape[:3]:
        raise ValueError(f"expected one value for each key, got shapes {tuple(keys.shape)} and {tuple(values.shape)}")


def with_four_axes(tensor: Tensor) -> Tensor:
    """Return a tensor that broadcasts to (batch, heads, queries, keys) with its missing first axes, of size 1."""
    return tensor[(None,) * (4 - tensor.dim())]


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(size in (1, target) for size, target in pairs)
