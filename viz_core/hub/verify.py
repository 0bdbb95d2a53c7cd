"""A report on request: whether recording leaves a model as it was, and whether its maps are those that it uses."""

import functools
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from viz_core.hub.first_pass import token_masks
from viz_core.hub.instrument import (
    configs_of,
    coverage,
    instrument,
    is_instrumented,
    outermost_models,
    restore,
    watch_layers,
)
from viz_core.hub.transformers_internals import set_implementation
from viz_core.hub.twins import copied, same_randomness, shared_copy, undisturbed
from viz_core.trace import Trace, find_sites, record
from viz_core.trace.coverage import describe_uncovered
from viz_core.trace.passes import every_site, named_sites
from viz_core.trace.verification import Verification, output_error

_MOST_KEYS = 256


def verify(model: Any, /, *args: Any, **inputs: Any) -> Verification:
    """Run a model with and without a recording, and compare outputs and maps; the model itself is not changed.

    verify(model, **tokenizer("The cat sat.", return_tensors="pt"))

    A model of transformers is run three times, in copies that share its weights: as it is (or was before `instrument`),
    recorded, and with eager attention, whose maps are compared with those recorded. Plain PyTorch is run twice. In both
    cases weights times values are compared with what the heads wrote: numbers from the layer's own kernel.

    Args:
        model: of `load_hub`, of transformers (instrumented or not), or of plain PyTorch.
        args, inputs: of its forward pass. Give it a model in evaluation mode: dropout is random.

    Returns:
        The report; `print` it for a line. `map_errors` holds NaN for sites for which eager attention gives no map of
        the same shape, as where it leaves out a sink.

    Raises:
        ValueError: if model is not a module or of `load_hub`.
    """
    stack = getattr(getattr(model, "engine", None), "stack", None)
    network = getattr(model, "network", model)
    if not isinstance(network, nn.Module):
        raise ValueError(
            f"verify: expected a model of load_hub, of transformers or of PyTorch, got {type(model).__name__}"
        )
    masks = token_masks(network, args, inputs)
    if not _is_of_transformers(network):
        return _verify_torch(network, args, inputs, masks)
    with undisturbed():
        expected = _restored(network)(*copied(args), **copied(inputs))
    twin = _restored(network)
    with same_randomness(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if stack is None:
            instrument(twin, verify=False)
        else:
            watch_layers(twin, find_sites(twin, stack, outside=True), verify=False)
        trace, result = _recorded(twin, args, inputs, torch_calls=False)
    with undisturbed():
        errors = map_errors(network, twin, trace, args, inputs)
    missing = describe_uncovered(coverage(network, stack))
    return _report(output_error(expected, result, masks), errors, trace, missing)


def _is_of_transformers(network: nn.Module) -> bool:
    try:
        return bool(outermost_models(network))
    except ImportError:
        return False


def _verify_torch(network: nn.Module, args: Any, inputs: dict[str, Any], masks: tuple[Tensor, ...]) -> Verification:
    with undisturbed():
        expected = network(*args, **inputs)
    with same_randomness(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace, result = _recorded(network, args, inputs, torch_calls=network)
    missing = "; ".join(str(each.message) for each in caught if str(each.message).startswith("record:"))
    return _report(output_error(expected, result, masks), {}, trace, missing)


def _report(error: float | None, maps: Mapping[str, float], trace: Trace, missing: str) -> Verification:
    reason = "the pass returns no tensor to compare" if error is None else ""
    return Verification(error, maps, trace.value_errors or {}, (missing,) if missing else (), reason)


def _recorded(network: nn.Module, args: Any, inputs: dict[str, Any], torch_calls: Any) -> tuple[Trace, Any]:
    with record(values=True, torch_calls=torch_calls) as trace:
        trace.value_errors = {}
        return trace, network(*copied(args), **copied(inputs))


def _restored(network: nn.Module) -> Any:
    twin = shared_copy(network)[0]
    if is_instrumented(twin):
        restore(twin)
    return twin


def verify_maps(network: nn.Module, trace: Trace, inputs: Mapping[str, Any]) -> None:
    """Add what eager attention says of the maps of a trace to its verification, and to that of the model's first pass.

    Nothing is done where that is known, the output was not compared, or there are many keys, of which eager attention
    stores whole maps.
    """
    check, found = getattr(network, "attention_check", None), trace.verification
    if check is None or found is None or found.output_error is None or found.map_errors:
        return
    if all(call.num_keys <= _MOST_KEYS for call in trace):
        with undisturbed():
            errors = map_errors(network, network, trace, (), dict(inputs))
        check.report = trace.verification = replace(found, map_errors=errors)


def map_errors(network: nn.Module, recorded: nn.Module, trace: Trace, args: Any, inputs: Any) -> dict[str, float]:
    """Return the largest difference of each recorded map from that which eager attention returns."""
    eager, maps = _restored(network), dict[str, tuple[list[list[Tensor]], int]]()
    for model in outermost_models(eager):
        for config in configs_of(model):
            set_implementation(config, "eager")
    sites = named_sites(recorded)
    calls = every_site(recorded, sites)
    for ours, layer in zip(recorded.modules(), eager.modules(), strict=True):
        if ours in sites and not any(part in sites for part in [*ours.modules()][1:]):
            listed = maps[sites[ours]][0] if sites[ours] in maps else []
            maps |= {site: (listed, place) for place, site in enumerate(calls[ours])}
            layer.register_forward_hook(functools.partial(_keep_maps, listed))
    try:
        eager(*copied(args), **{**copied(inputs), "output_attentions": True})
    except Exception:  # families without eager attention
        return dict.fromkeys(trace.sites, float("nan"))
    errors = {}
    for call in trace:
        site, _, number = call.site.partition("@")
        listed, place = maps.get(site, ([], 0))
        place += int(number or 1) - 1
        weights, tokens = call.weights(), call.query_mask[:, None, :, None]
        found = list[float]()  # none of queries that are sampled anew
        for each in listed[place] if place < len(listed) and call.sampled is None else ():
            num_sinks = weights.shape[3] - each.shape[3]  # eager maps leave them out
            if each.shape[:3] == weights.shape[:3] and num_sinks in (0, 1):
                found.append(float(((weights[..., num_sinks:] - each.float().cpu()).abs() * tokens).max()))
        errors[call.site] = min(found, default=float("nan"))
    return errors


def _keep_maps(found: list[list[Tensor]], _layer: nn.Module, _inputs: Any, output: Any) -> None:
    parts = output if isinstance(output, tuple | list) else (output,)
    found.append([part for part in parts if isinstance(part, Tensor) and part.dim() == 4 and part.is_floating_point()])
