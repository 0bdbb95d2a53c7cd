"""Which layers of a transformers model call its attention interface, have code of their own, or cannot be recorded."""

import inspect
import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from torch import nn

from viz_core.hub.attention import ATTENTION_IMPLEMENTATION, WITH_EAGER_MASKS
from viz_core.hub.transformers_internals.attention_settings import CALLS_INTERFACE, supports_fused
from viz_core.hub.transformers_internals.linear_rules import has_rule
from viz_core.trace import find_sites
from viz_core.trace.coverage import LayerCoverage, cover_layers
from viz_core.trace.sites import is_linear_attention
from viz_core.trace.softmax_calls import spans_all_keys

_ATTENDS = re.compile(
    r"oftmax\(|\bscaled_dot_product_attention\(|\bmulti_head_attention_forward\(|\bshifted_window_attention\("
)


def own_sites(sites: Mapping[nn.Module, str]) -> tuple[str, ...]:
    """The sites none of whose layers calls transformers' attention interface.

    Judged by the code of each layer's class, as transformers does by that of whole modules: one module may hold both
    kinds (BigBird's encoder and its decoder), and a class of one's own, in a notebook, has no module to look at.
    """
    passing = {site for layer, site in sites.items() if _code(type(layer), CALLS_INTERFACE)}  # type: ignore[arg-type]
    return tuple(dict.fromkeys(site for site in sites.values() if site not in passing))


def outermost(sites: Mapping[nn.Module, str], wanted: Collection[str]) -> dict[nn.Module, str]:
    """The layers of the wanted sites that lie in no other layer."""
    inner = {id(part) for layer in sites for part in layer.modules() if part is not layer}
    return {layer: site for layer, site in sites.items() if site in wanted and id(layer) not in inner}


def hidden_sites(sites: Mapping[nn.Module, str]) -> tuple[str, ...]:
    """Sites with code of their own that cannot be recorded: no softmax over all keys."""
    hidden = (site for layer, site in outermost(sites, own_sites(sites)).items() if not _can_be_recorded(layer))
    return tuple(dict.fromkeys(hidden))


def coverage(model: nn.Module, stack: str | None = None) -> tuple[LayerCoverage, ...]:
    """Return a row for each layer of a model, and for each part of it that mixes tokens: its site, or the reason.

    Nothing is run or changed, so the model may be on torch's "meta" device.

    Args:
        stack: the name of its one stack in sites, as `load_hub` sets it; None where the layers' paths decide.

    Raises:
        ValueError: if model is not an nn.Module.
    """
    sites = find_sites(model, stack)
    return cover_layers(model, sites, frozenset(hidden_sites(sites)))


def _can_be_recorded(layer: nn.Module) -> bool:
    kinds = {type(module) for module in layer.modules()}
    if any(is_linear_attention(part) and has_rule(part) for part in layer.modules()):
        return True
    attends = any(issubclass(kind, nn.MultiheadAttention) or _code(kind, _ATTENDS) for kind in kinds)  # type: ignore[arg-type]
    return attends and spans_all_keys(layer)


@lru_cache(maxsize=256)
def _code(layer: type[nn.Module], pattern: re.Pattern[str]) -> bool:
    """Whether a pattern stands in the code of a class of layers, or of what it is made from."""
    for each in layer.__mro__:
        if issubclass(each, nn.Module) and not each.__module__.startswith("torch."):
            try:
                if pattern.search(inspect.getsource(each)):
                    return True
            except (OSError, TypeError):  # no source to read
                continue
    return False


def implementation_for(model: nn.Module) -> str:
    """The name under which our attention is given the masks that a model relies on.

    To fused attention no mask means causal where a layer says so. Models that support it promise that, and it holds
    where every layer is causal, as in Gemma 2. Others say nothing (Splinter), or read the masks in code of their own:
    the experts of NLLB, the encoder of Pegasus X.
    """
    from transformers import PreTrainedModel

    attending = [part for part in model.modules() if isinstance(part, PreTrainedModel) and find_sites(part)]
    layers = (layer for part in attending for layer in find_sites(part) if not is_linear_attention(layer))
    causal = all(getattr(layer, "is_causal", False) for layer in layers)
    fused = all(supports_fused(part) for part in attending)
    return ATTENTION_IMPLEMENTATION if fused or causal else WITH_EAGER_MASKS
