"""Which layers of a transformers model pass our door, and which compute attention in code of their own."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import lru_cache

from torch import nn

from viz_core.hub.attention import ATTENTION_IMPLEMENTATION, WITH_EAGER_MASKS
from viz_core.trace import find_sites


def own_sites(sites: Mapping[nn.Module, str]) -> tuple[str, ...]:
    """The sites that none of their layers hands to transformers' attention interface: nobody can see into them.

    Judged by the code of each layer's class, as transformers does by that of whole modules: one module may hold both
    kinds (BigBird's encoder and its decoder), and a class of one's own, in a notebook, has no module to look at.
    """
    passing = {site for layer, site in sites.items() if _passes(type(layer))}  # type: ignore[arg-type]
    return tuple(dict.fromkeys(site for site in sites.values() if site not in passing))


@lru_cache(maxsize=256)
def _passes(layer: type[nn.Module]) -> bool:
    for each in layer.__mro__:
        if issubclass(each, nn.Module) and each is not nn.Module:
            try:
                if "ALL_ATTENTION_FUNCTIONS" in inspect.getsource(each):
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
    causal = all(getattr(layer, "is_causal", False) for part in attending for layer in find_sites(part))
    fused = all(part._supports_sdpa for part in attending)
    return ATTENTION_IMPLEMENTATION if fused or causal else WITH_EAGER_MASKS
