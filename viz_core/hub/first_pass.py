"""Whether recording leaves a model of transformers as it was: checked at its first recorded pass, and on request.

What it is compared with is a copy that shares the weights and has its former attention: the model that records is not
changed, so other threads may use it meanwhile.
"""

import copy
import functools
import inspect
import math
import warnings
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from viz_core.hub.attention import ATTENTION_IMPLEMENTATION
from viz_core.hub.transformers_internals import implementation, set_implementation
from viz_core.hub.twins import Products, copied, shared_copy, undisturbed
from viz_core.torch_internals import is_transformed
from viz_core.trace import site_of
from viz_core.trace.arguments import version
from viz_core.trace.intervene import is_editing
from viz_core.trace.trace import Trace, current_trace
from viz_core.trace.verification import Verification, output_error, rounding, tensors_of

LEFT_OUT = Verification(reason="left out by instrument(model, verify=False)")


@dataclass(eq=False)
class Check:
    """The check of a model, or of a model within it. It is kept on the model, and says nothing about single calls."""

    implementations: list[tuple[Any, str | None]]  # the attention of each config before
    hooks: frozenset[int]  # ids of the hooks that recording added
    parent: "Check | None" = None  # that of the model around it
    report: Verification | None = None  # of the first pass that was compared; None until then

    @property
    def found(self) -> Verification | None:
        """Its report, or that of a model around it."""
        return self.report or (None if self.parent is None else self.parent.found)


@dataclass
class _Pass:
    model: nn.Module
    trace: Trace
    report: Verification | None = None  # where there is nothing to compare
    twin: Any = None  # the model as it was before
    products: Products | None = None
    weights: list[int | None] = field(default_factory=list)  # how often each was changed in place
    given: "_Given | None" = None
    num_calls: int = 0


@dataclass
class _Given:
    """What a pass is given, in copies where a model may change it: caches."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    token_masks: tuple[Tensor, ...] = field(default_factory=tuple)

    def again(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return copied(self.args), copied(self.kwargs)


_open: ContextVar[tuple[_Pass, ...]] = ContextVar("verified_passes", default=())


def before_pass(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Copy a model as it was before, if this is its first recorded pass."""
    if torch.compiler.is_compiling():
        return
    trace, passes = current_trace(), _open.get()
    if passes and (passes[-1].model is model or (trace is not None and passes[-1].trace is not trace)):
        _close(passes[-1])  # Ctrl-C ended it
    elif passes:
        return
    if trace is None:
        return
    check: Check | None = getattr(model, "attention_check", None)
    started = _Pass(model, trace)
    _open.set((started,))
    if check is None:
        return
    started.report = check.found or _reason_against(model, args, kwargs)
    started.num_calls = len(trace)
    if started.report is None:
        masks = token_masks(model, args, kwargs)
        try:
            started.given = _Given(copied(args), copied(kwargs), masks)
            started.twin = as_before(model, check)
        except Exception as error:  # whatever cannot be copied
            check.report = started.report = _not_run(error)
        else:
            started.weights = _versions(model)
            started.products = Products()
            started.products.begin()


def after_pass(model: nn.Module, _args: Any, _kwargs: Any, result: Any) -> None:
    """Compare a first recorded pass with the model as it was; ValueError, and nothing recorded, if they differ."""
    passes = _open.get()
    if not passes or passes[-1].model is not model:
        return
    done = passes[-1]
    _open.set(())
    if done.products is not None:
        done.products.end()
    try:
        _report(model, done, result)
    finally:
        _close(done)


def _report(model: nn.Module, done: _Pass, result: Any) -> None:
    check: Check | None = getattr(model, "attention_check", None)
    if result is None or check is None:  # the pass failed
        return
    if len(done.trace) == done.num_calls:
        _warn_of_changed_attention(model, check)
    if done.report is None:
        done.report = _compared(model, check, done, result)
        check.report = done.report
    if len(done.trace) > done.num_calls or done.trace.verification is None:
        done.trace.verification = done.report.worst(done.trace.verification)


def _close(done: _Pass) -> None:
    _open.set(())
    if done.products is not None:
        done.products.close()


def _versions(model: nn.Module) -> list[int | None]:
    return [version(weight) for weight in model.parameters()]


def _not_run(error: Exception) -> Verification:
    return Verification(reason=f"{type(error).__name__}: {error}"[:200])


def _compared(model: nn.Module, check: Check, done: _Pass, result: Any) -> Verification:
    assert done.given is not None
    assert done.products is not None
    if _versions(model) != done.weights:  # which the copy shares
        return Verification(reason="the pass changed the model's weights")
    try:
        with done.products.again():
            args, kwargs = done.given.again()
            expected = done.twin(*args, **kwargs)
    except Exception as error:  # whatever cannot be copied, or runs only under our attention
        return _not_run(error)
    finally:
        done.twin = None
    error = output_error(expected, result, done.given.token_masks)
    if error is None:
        return Verification(reason="the pass returns no tensor to compare")
    if error <= rounding()[1]:  # within the rounding of any type
        return Verification(error)
    precision, allowed = precision_of(model, result)
    if error > allowed:
        reason, allowed = explained(model, check, done.given, expected, result, precision, allowed)
        if reason:
            return Verification(reason=reason)
    if error <= allowed:
        return Verification(error)
    done.trace.discard()
    sites = changed_sites(model, check, done.given, allowed)
    where = f"from {', '.join(sites[:3])}{' and further layers' if len(sites) > 3 else ''}" if sites else "its layers"
    raise ValueError(
        f"recording would change the output of {type(model).__name__} by {error:.2g} of its size (rounding explains "
        f"{allowed:.0e}), {where}: nothing is recorded. restore(model) leaves it as it was; "
        "instrument(model, verify=False) leaves this check out"
    )


def _warn_of_changed_attention(model: nn.Module, check: Check) -> None:
    names = {str(implementation(config)) for config, _ in check.implementations}
    others = {name for name in names if not name.startswith(ATTENTION_IMPLEMENTATION)}
    if others:
        warnings.warn(
            f"record: nothing is recorded of {type(model).__name__}, whose attention was set to "
            f"{', '.join(sorted(others))} after instrument(model): call instrument(model) again",
            stacklevel=5,
        )


def _reason_against(model: nn.Module, args: Any, kwargs: Any) -> Verification | None:
    """Return why this pass says nothing about the model; the next one may."""
    if is_editing():
        return Verification(reason="heads are edited")
    if model.training:
        return Verification(reason="the model is in training, where dropout is random")
    tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
    if any(each.is_meta or is_transformed(each) for each in tensors):
        return Verification(reason="inputs without numbers of their own")
    given = kwargs.get("attention_mask")
    masks = given.values() if isinstance(given, dict) else [given]
    if any(isinstance(mask, Tensor) and mask.dim() == 4 for mask in masks):  # by `generate`, for a static cache
        return Verification(reason="masks that were made for the recording's attention")
    return None


def as_before(model: nn.Module, check: Check, keep_foreign: bool = False) -> Any:
    """Return a copy with the attention that the model had before, which shares its weights."""
    twin, memo = shared_copy(model, check.hooks, keep_foreign)
    for config, name in check.implementations:
        if id(config) in memo:
            set_implementation(memo[id(config)], name)
    return twin


def explained(
    model: nn.Module, check: Check, given: _Given, expected: Any, result: Any, precision: float, allowed: float
) -> tuple[str, float]:
    """Return another reason for a difference, or the error that may be due to hooks of the user, or to rounding.

    In half precision rounding is left out: both passes are done again in float32. Else it is measured, as some models
    magnify it: how far does the output change by noise of its size in the outputs of attention?
    """
    masks = given.token_masks

    def output_of(twin: Any) -> Any:
        args, kwargs = given.again()
        return twin(*args, **kwargs)

    with undisturbed():
        repeated = output_error(expected, output_of(as_before(model, check)), masks)
        if repeated is None or repeated > allowed:
            return "two passes of the model on the same inputs differ", allowed
        own = output_error(output_of(as_before(model, check, keep_foreign=True)), result, masks)
        if own is not None and own <= allowed:
            return "", math.inf
        if precision > torch.finfo(torch.float32).eps:
            wide = _wide_error(model, check, given)
            if wide is not None:
                return "", math.inf if wide <= rounding(torch.float32)[1] else allowed
        twin = as_before(model, check)
        for layer in twin.modules():
            if site_of(layer) is not None:
                layer.register_forward_hook(lambda _layer, _inputs, output: _with_noise(output, precision))
        noise = output_error(expected, output_of(twin), masks) or 0.0
    if noise > 0.1:
        return f"rounding alone changes the output by {noise:.1g} of its size", allowed
    return "", max(allowed, 8 * noise)


def _wide_error(model: nn.Module, check: Check, given: _Given) -> float | None:
    """Return the error of the output where both passes are in float32; None where the model cannot be."""
    try:
        twins = as_before(model, check), shared_copy(model, check.hooks)[0]
        outputs = []
        for twin in twins:
            twin = copy.deepcopy(twin).float()  # weights of its own, as those are the model's
            args, kwargs = _in_float32(given.again())
            with torch.autocast(next(model.parameters()).device.type, enabled=False):
                outputs.append(twin(*args, **kwargs))
        return output_error(outputs[0], outputs[1], given.token_masks)
    except Exception:  # quantised weights, too little memory
        return None


def _in_float32(given: Any) -> Any:
    if isinstance(given, Tensor):
        return given.float() if given.is_floating_point() else given
    if type(given) is dict:
        return {name: _in_float32(value) for name, value in given.items()}
    return type(given)(_in_float32(each) for each in given) if type(given) in (tuple, list) else given


def _with_noise(output: Any, precision: float) -> Any:
    """Return a layer's output with an error of the size of rounding."""
    first = output[0] if isinstance(output, tuple) and output else output
    if not isinstance(first, Tensor) or not first.is_floating_point():
        return None
    noisy = first + precision * first.float().square().mean().sqrt().to(first.dtype) * torch.randn_like(first)
    return (noisy, *output[1:]) if isinstance(output, tuple) else noisy


def changed_sites(model: nn.Module, check: Check, given: _Given, allowed: float) -> list[str]:
    """Return the sites whose outputs differ, in the order in which they ran."""
    outputs: list[list[tuple[str, Any]]] = []
    for twin in (as_before(model, check), shared_copy(model, check.hooks)[0]):
        found = list[tuple[str, Any]]()
        for layer in twin.modules():
            if (site := site_of(layer)) is not None:
                layer.register_forward_hook(functools.partial(_keep_output, site, found))
        with undisturbed():
            args, kwargs = given.again()
            twin(*args, **kwargs)
        outputs.append(found)
    different = dict[str, None]()
    for (site, one), (_, other) in zip(*outputs, strict=False):
        error = output_error(one, other, given.token_masks)
        if error is not None and error > allowed:
            different[site] = None
    return list(different)


def token_masks(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, ...]:
    """Return the masks (batch, n) that a pass is given, True where there is a token; the decoder's first."""
    try:
        named = inspect.signature(model.forward).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        named = {}
    named = {**named, **named.pop("kwargs", {}), **kwargs}
    masks = [named.get(name) for name in ("decoder_attention_mask", "attention_mask")]
    return tuple(mask.bool() for mask in masks if isinstance(mask, Tensor) and mask.dim() == 2)


def precision_of(model: nn.Module, result: Any) -> tuple[float, float]:
    """Return the precision in which a model computes, and the error that rounding may explain."""
    found = next((each for _, each in tensors_of(result)), None)
    dtypes = {weight.dtype for weight in model.parameters()} | (set() if found is None else {found.dtype})
    device = "cpu" if found is None else found.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        dtypes.add(torch.get_autocast_dtype(device))
    if device == "cuda" and torch.backends.cuda.matmul.allow_tf32:
        dtypes.add(torch.float16)  # as many digits
    return rounding(*(dtype for dtype in dtypes if dtype.itemsize > 1))


def _keep_output(site: str, found: list[tuple[str, Any]], _layer: nn.Module, _inputs: Any, output: Any) -> None:
    found.append((site, output))
