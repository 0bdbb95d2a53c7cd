"""Record a transformers model that is in memory already, and restore it."""

import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from torch import nn
from torch.utils.hooks import RemovableHandle

from viz_core.hub.attention import register, warn_of_requested_maps, watch_projections
from viz_core.hub.custom_attention import (
    Handles,
    add_hooks,
    hidden_sites,
    implementation_for,
    outermost,
    own_sites,
    remove_hooks,
    takes_boolean_masks,
)
from viz_core.hub.first_pass import LEFT_OUT, Check, after_pass, before_pass
from viz_core.hub.kinds import recognise
from viz_core.hub.linear_attention import watch_linear
from viz_core.hub.store import HubError
from viz_core.hub.transformers_internals import (
    has_implementation,
    implementation,
    nested_configs,
    set_implementation,
    supports_fused,
)
from viz_core.runtime.packages import require
from viz_core.trace import find_sites, name_site, site_of
from viz_core.trace.coverage import LayerCoverage, cover_layers, describe_uncovered
from viz_core.trace.passes import begin_texts, end_texts, every_site
from viz_core.trace.sites import is_linear_attention
from viz_core.trace.states import add_state_hooks


def instrument(model: nn.Module, *, verify: bool = True) -> tuple[str, ...]:
    """Make a loaded transformers model go through our attention, so that `record()` sees it; `restore` undoes it.

    The model computes what it did, with its own weights, whatever they are: fine-tuned, in training, quantised. It may
    lie within another (an adapter, a wrapper for several devices). What is set is the model's own: its configs and the
    names of its layers. Models built from one config object share it until the last of them is restored; a copy of an
    instrumented model is instrumented, and can be restored by itself. After another
    `set_attn_implementation`, call `instrument` again.
    `output_attentions` gives no maps until it is restored. A learned sink, as in gpt-oss, is the first key of its maps.
    Layers that share their weights, as in ALBERT, have a site each: "encoder.0.self", "encoder.1.self". Attention
    outside the lists of layers has one too, "vision.head.cross" of a pooling head.
    What a model writes is recorded step by step ("decoder.0.self@2"); one map of it is that of a pass over the whole.

    Layers that compute attention in code of their own (BLOOM, DeBERTa, GPT-J) keep it, and are recorded at its softmax
    as whole maps, queries times keys, before dropout. No intervention reaches them.

    Args:
        verify: whether the first recorded pass is compared with the same pass of the model as it was, which takes it
            up to twice as long: ValueError if recording would change its output. The trace says what was found
            (`Trace.verification`), or that it was left out.

    Returns:
        The sites that a recording of it may have, named as by `load_hub`; the same for a model instrumented before.

    Raises:
        ValueError: if it is not a transformers model, has no attention, or no layer weighs all keys at once, as in
            Longformer (windows), Reformer (hashes) and Autoformer (lags); nothing is changed then. A warning names
            the layers that are not recorded, and why (`coverage`).
        ImportError: if transformers is not installed, or another version than we know.
    """
    require("hub", "transformers")
    parts: list[Any] = outermost_models(model) if isinstance(model, nn.Module) else []
    if not parts:
        raise ValueError(
            f"instrument: expected a model of transformers, got {type(model).__name__}; "
            "record(torch_calls=True) sees plain PyTorch"
        )
    sites = _sites_of(parts)
    if not sites:
        raise ValueError(f"instrument: expected a model with attention in layers, got {type(model).__name__}")
    hidden = hidden_sites(sites)
    calls = [each for part in parts for each in every_site(part, _within(part, sites)).items()]
    seen = tuple(dict.fromkeys(site for layer, own in calls if sites[layer] not in hidden for site in own))
    if not seen:
        raise ValueError(
            f"instrument: expected attention that weighs all keys at once, got {type(model).__name__}, whose own code "
            "has no such softmax (but windows, blocks, hashes, lags, sums): there are no whole maps"
        )
    register()
    for part in parts:
        watch_layers(part, _within(part, sites), verify)
    missing = describe_uncovered(row for part in parts for row in cover_layers(part, sites, frozenset(hidden)))
    if missing:
        warnings.warn(f"instrument: not recorded of {type(model).__name__}: {missing}", stacklevel=2)
    return seen


def coverage(model: nn.Module, stack: str | None = None) -> tuple[LayerCoverage, ...]:
    """Return a row for each layer of a model, and for each part of it that mixes tokens: its site, or the reason.

    Nothing is run or changed, so the model may be on torch's "meta" device.

    Args:
        stack: the name of its one stack in sites, as `load_hub` sets it; that of `instrument` unless given. Plain
            PyTorch names nothing outside the lists of layers.

    Raises:
        ValueError: if model is not an nn.Module.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(f"model: expected an nn.Module, got {type(model).__name__}")
    sites = find_sites(model, stack, outside=stack is not None)
    if stack is None and "transformers" in sys.modules:
        sites |= _sites_of(outermost_models(model))
    return cover_layers(model, sites, frozenset(hidden_sites(sites)))


def _sites_of(parts: list[Any]) -> dict[nn.Module, str]:
    return {layer: site for part in parts for layer, site in find_sites(part, _stack(part), outside=True).items()}


def _within(part: nn.Module, sites: Mapping[nn.Module, str]) -> dict[nn.Module, str]:
    return {layer: sites[layer] for layer in part.modules() if layer in sites}


def restore(model: nn.Module) -> None:
    """Put back what `instrument` changed: attention functions and names are what they were.

    Raises:
        ValueError: if the model is not instrumented.
    """
    with _changing:
        parts = [part for part in outermost_models(model) if hasattr(part, "attention_before")]
        if not parts:
            raise ValueError(f"restore: expected a model that was instrumented, got {type(model).__name__}")
        for part in parts:
            _leave(part)


@dataclass(frozen=True)
class _Before:
    """State before `instrument`: attention of the configs, names of the layers, and the hooks added since. It
    is kept on the model itself, so that a copy of it, or one that was pickled, can be restored as well."""

    implementations: list[tuple[Any, str | None]]
    sites: list[tuple[nn.Module, str | None]]
    listening: list[tuple[nn.Module, Handles]]
    watching: list[RemovableHandle]  # projections, requests for maps, and first passes
    checked: list[nn.Module]  # models whose first recorded pass is compared

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        register()  # it may have come from another process


_instrumented: WeakSet[Any] = WeakSet()
_changing = threading.Lock()


def watch_layers(part: Any, sites: Mapping[nn.Module, str], verify: bool = True) -> None:
    """Set our attention in a model's configs, name its layers and hook what is recorded; store what they were, once."""
    with _changing:
        _watch(part, sites)
        for model in part.attention_before.checked:
            model.attention_check.report = None if verify else LEFT_OUT


def _watch(part: Any, sites: Mapping[nn.Module, str]) -> None:
    own, hidden = own_sites(sites), hidden_sites(sites)
    linear = [layer for layer in sites if is_linear_attention(layer) and sites[layer] not in hidden]
    listened = outermost(sites, set(own) - set(hidden) - {sites[layer] for layer in linear})
    models = {module: find_sites(module) for module in part.modules() if _is_model(module)}
    models = {module: layers for module, layers in models.items() if layers}
    seen = {id(model.config) for model, layers in models.items() if any(sites[layer] not in own for layer in layers)}
    blind = {id(model.config) for model in models} - seen  # what these ask for, their own code may read
    configs = [config for config in configs_of(part) if id(config) not in blind]
    if not hasattr(part, "attention_before"):
        others = [other.attention_before for other in _instrumented]
        implementations = {id(config): was for other in others for config, was in other.implementations}
        names = {layer: was for other in others for layer, was in other.sites}
        handles_of = {layer: handles for other in others for layer, handles in other.listening}
        passing = [layer for layer in sites if sites[layer] not in own]
        watched = watch_projections(part, passing) + watch_projections(part, linear)
        watched += watch_linear(linear) + add_state_hooks(part, sites)
        if passing:
            watched.append(part.register_forward_pre_hook(warn_of_requested_maps, with_kwargs=True))
        was = [(config, implementations.get(id(config), implementation(config))) for config in configs]
        listening = [(layer, handles_of.get(layer) or add_hooks(layer)) for layer in listened]
        checked = [model for model in models if not hasattr(model, "attention_check")]
        hooks = {handle.id for handle in (*watched, *(handle for _, handles in listening for handle in handles))}
        for model in checked:
            parent = next((each for each in checked if each is not model and model in {*each.modules()}), None)
            around = None if parent is None else parent.attention_check
            model.attention_check = Check(was, frozenset(hooks), around)
            watched.append(model.register_forward_pre_hook(begin_texts, with_kwargs=True))
            watched.append(model.register_forward_hook(end_texts, always_call=True))
            watched.append(model.register_forward_pre_hook(before_pass, with_kwargs=True))
            watched.append(model.register_forward_hook(after_pass, with_kwargs=True, always_call=True))
        own_names = [(layer, names.get(layer, site_of(layer))) for layer in sites]
        part.attention_before = _Before(was, own_names, listening, watched, checked)
    _instrumented.add(part)
    before = {id(config): name for config, name in part.attention_before.implementations}
    layers_of = [layer for layer in find_sites(part) if not is_linear_attention(layer)]
    fused = all(supports_fused(model) for model in models) or takes_boolean_masks(layers_of)
    for config in configs:
        set_implementation(config, implementation_for(before[id(config)], fused))
    for layer, site in sites.items():
        name_site(layer, site)


def _leave(part: Any) -> None:
    """Put back what no other instrumented model shares with this one."""
    before: _Before = part.attention_before
    del part.attention_before
    _instrumented.discard(part)
    others = [other.attention_before for other in _instrumented]
    shared = {id(thing) for other in others for thing, _ in (*other.implementations, *other.sites)}
    for layer, handles in before.listening:
        if id(layer) not in shared:
            remove_hooks(layer, handles)
    for handle in before.watching:
        handle.remove()
    for model in before.checked:
        del model.attention_check
    for config, name in before.implementations:
        if id(config) not in shared:
            set_implementation(config, name)
    for layer, site in before.sites:
        if id(layer) in shared:
            continue
        if site is None:
            del layer.attention_site
        else:
            name_site(layer, site)


def outermost_models(module: nn.Module) -> list[nn.Module]:
    """The model itself, or the models of transformers that lie within it, none within another."""
    if _is_model(module):
        return [module]
    return [model for child in module.children() for model in outermost_models(child)]


def is_instrumented(model: nn.Module) -> bool:
    """Whether `restore` would find something to put back."""
    return any(hasattr(part, "attention_before") for part in outermost_models(model))


def _is_model(module: nn.Module) -> bool:
    from transformers import PreTrainedModel

    return isinstance(module, PreTrainedModel)


def _stack(part: Any) -> str | None:
    """Prefix of the sites of its one stack; None where the layers' paths decide."""
    try:
        return recognise(part.config, type(part).__name__, architecture=type(part).__name__).kind.stack
    except HubError:  # speech, several inputs: a family that only its own code can run
        causal = [getattr(layer, "is_causal", is_linear_attention(layer)) for layer in find_sites(part)]
        return "decoder" if causal and all(causal) else None


def configs_of(part: Any) -> Iterator[Any]:
    """Every config of a model, its parts and its layers, each once."""
    seen: set[int] = set()
    waiting = [module.config for module in part.modules() if hasattr(module, "config")]
    while waiting:
        config = waiting.pop()
        if id(config) not in seen and has_implementation(config):
            seen.add(id(config))
            yield config
            waiting += nested_configs(config)
