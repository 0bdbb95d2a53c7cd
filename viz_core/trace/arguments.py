"""Checks of public arguments: each error names the argument, what was expected and what came."""

import math
from numbers import Real

import torch
from torch import Tensor

from viz_core.torch_internals.tensors import is_transformed
from viz_core.trace.autocast import is_autocast_on

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
