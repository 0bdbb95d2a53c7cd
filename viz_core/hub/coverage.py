"""Every layer of a transformers model: the sites that a recording has, or the reason why it has none."""

from torch import nn

from viz_core.hub.custom_attention import hidden_sites
from viz_core.trace import find_sites
from viz_core.trace.coverage import LayerCoverage, cover_layers


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
