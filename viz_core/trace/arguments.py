"""What public functions may be given, each argument judged by its name: else a sentence, in place of torch's own."""

from __future__ import annotations

import math
from numbers import Real

import torch
from torch import Tensor

from viz_core.torch_internals.tensors import is_transformed
from viz_core.trace.autocast import is_autocast_on

_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def described(thing: object) -> str:
    """What came, for an error: a tensor by its type and shape, a number as it is, anything else by its class."""
    if isinstance(thing, Tensor):
        return f"{str(thing.dtype).removeprefix('torch.')} of shape {tuple(thing.shape)}"
    return f"{type(thing).__name__} {thing}" if isinstance(thing, Real) else type(thing).__name__


def check_tensors(**named: object) -> None:
    """Refuse what is no floating-point tensor, and tensors of several types or on several devices.

    Raises:
        ValueError: naming what was expected and what came.
    """
    first: Tensor | None = None
    alike = True
    for name, thing in named.items():
        if not isinstance(thing, Tensor) or not thing.is_floating_point():
            came = thing.dtype if isinstance(thing, Tensor) else type(thing).__name__
            raise ValueError(f"{name}: expected a floating-point tensor, got {came}")
        first = thing if first is None else first
        alike = alike and thing.dtype == first.dtype and thing.device == first.device
    if not alike:  # asked a thousand times a sentence while one is decoded
        _check_alike(named, "dtype")
        _check_alike(named, "device")


def check_device(**named: object) -> None:
    """Refuse tensors on several devices; what is no tensor is not judged.

    Raises:
        ValueError: naming where each is.
    """
    devices = [thing.device for thing in named.values() if isinstance(thing, Tensor)]
    if len(devices) > 1 and devices.count(devices[0]) < len(devices):
        _check_alike(named, "device")


def check_like(name: str, X: Tensor, weight: object) -> None:
    """Refuse what cannot be multiplied by a layer's weights: another type than theirs, or on another device.

    Under autocast types may differ, and so they may where the weights are quantised. Weights on no device come when
    they are needed.

    Raises:
        ValueError: naming what was expected and what came.
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
    """Refuse tensors that have not the axes of a form such as "batch n width"; "..." stands for any number of them.

    Raises:
        ValueError: naming both.
    """
    names = form.split()
    for name, tensor in named.items():
        fits = tensor.dim() >= len(names) - 1 if "..." in names else tensor.dim() == len(names)
        if not fits:
            raise ValueError(f"{name}: expected ({', '.join(names)}), got shape {tuple(tensor.shape)}")


def check_integers(**named: object) -> None:
    """Refuse what is no tensor of whole numbers.

    Raises:
        ValueError: naming what came.
    """
    for name, thing in named.items():
        if not isinstance(thing, Tensor) or thing.dtype not in _WHOLE:
            raise ValueError(f"{name}: expected a tensor of integers, got {described(thing)}")


def check_whole(least: int = 1, **named: object) -> None:
    """Refuse what is no whole number from `least` on; numpy's are as good as Python's.

    Raises:
        ValueError: naming what came.
    """
    for name, number in named.items():
        if not is_whole(number):
            raise ValueError(f"{name}: expected a whole number, got {described(number)}")
        if number < least:  # type: ignore[operator]
            raise ValueError(f"{name}: expected at least {least}, got {number}")


def check_number(least: float = -math.inf, most: float = math.inf, **named: object) -> None:
    """Refuse what is no finite number from `least` to `most`.

    Raises:
        ValueError: naming what came.
    """
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
    """Refuse what is no finite number above 0.

    Raises:
        ValueError: naming what came.
    """
    for name, number in named.items():
        if not is_number(number) or not number > 0:  # type: ignore[operator]
            came = number if isinstance(number, Real) else described(number)
            raise ValueError(f"{name}: expected a positive number, got {came}")


def is_whole(number: object) -> bool:
    """Whether it is a whole number, Python's or numpy's; no truth value and no tensor."""
    return isinstance(number, int | torch.SymInt) or _is_numpys(number) if not isinstance(number, bool) else False


def is_number(number: object) -> bool:
    """Whether it is a finite number, Python's or numpy's; no truth value and no tensor."""
    if isinstance(number, bool):
        return False
    return isinstance(number, torch.SymInt | torch.SymFloat) or (isinstance(number, Real) and math.isfinite(number))


def can_be_read(tensor: Tensor) -> bool:
    """Whether looking at a tensor's numbers is possible here: not where they are not there, nor while torch traces."""
    if torch.compiler.is_compiling() or not tensor.numel() or tensor.is_meta:
        return False
    return not is_transformed(tensor)


def _is_numpys(number: object) -> bool:
    return isinstance(number, Real) and hasattr(number, "__index__")


def _check_alike(named: dict[str, object], what: str) -> None:
    tensors = {name: thing for name, thing in named.items() if isinstance(thing, Tensor)}
    if len({getattr(tensor, what) for tensor in tensors.values()}) > 1:
        came = ", ".join(f"{name} {getattr(tensor, what)}" for name, tensor in tensors.items())
        raise ValueError(f"expected {' and '.join(tensors)} of one {what}, got {came}")
