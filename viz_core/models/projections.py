"""Find the output projection of an attention layer by its site, in models of this library and of Hugging Face."""

from typing import Any

from torch import Tensor, nn

from viz_core.attention import AdditiveAttention
from viz_core.trace import find_sites, site_of
from viz_core.trace.sites import projections


def output_projection(model: nn.Module, site: str) -> Any:
    """Return W_o of the attention layer at a site, with its adapters or quantised; GPT-2's as a Linear.

    It has one of the usual names within the layer, or, as in BERT, beside it: `attention.self` is followed by
    `attention.output.dense`. The innermost layer of a site comes first. ValueError if there is no such site, or no
    projection is found there.
    """
    parts, name = dict(model.named_modules()), site.partition("@")[0]  # "encoder.0.self@2" is that layer called again
    layers = sorted((path for path, part in parts.items() if site_of(part) == name), key=len, reverse=True)
    if not layers:  # a model of plain PyTorch
        sites = find_sites(model)
        layers = [path for path, part in parts.items() if sites.get(part) == name][::-1]
    if not layers:
        raise ValueError(f"site: expected one of the model's layers, got {site!r}")
    found = next((part for path in layers for part in projections(parts, path)), None)
    if hasattr(found, "in_features"):
        return found
    if type(found).__name__ != "Conv1D" or found is None:
        raise ValueError(f"site: expected a layer with an output projection, got {site!r}, where none was found")
    weight: Tensor = found.weight  # type: ignore[assignment]
    transposed = nn.Linear(*weight.shape, bias=False, device="meta")
    transposed.weight = nn.Parameter(weight.detach().T, requires_grad=False)
    transposed.bias = found.bias  # type: ignore[assignment]
    return transposed


def hands_on_values(model: nn.Module, site: str) -> bool:
    """Whether the layer at a site has no output projection: additive attention ends with sum_j a_ij v_j."""
    return any(isinstance(part, AdditiveAttention) and site_of(part) == site for part in model.modules())
