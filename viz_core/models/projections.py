"""Find the output projection of an attention layer by its site, in models of this library and of Hugging Face."""

from __future__ import annotations

from torch import nn

from viz_core.attention import AdditiveAttention
from viz_core.trace import site_of

_NAMES = ("W_o", "o_proj", "out_proj", "c_proj", "o", "proj", "dense")


def output_projection(model: nn.Module, site: str) -> nn.Linear:
    """Return W_o of the attention layer at a site, as a Linear that shares its weights.

    It has one of the usual names within the layer, or, as in BERT, beside it: `attention.self` is followed by
    `attention.output.dense`. The innermost layer of a site comes first.

    Raises:
        ValueError: if there is no such site, no projection is found there, or a gate multiplies what enters it.
    """
    parts = dict(model.named_modules())
    layers = sorted((path for path, part in parts.items() if site_of(part) == site), key=len, reverse=True)
    if not layers:
        raise ValueError(f"site: expected one of the model's layers, got {site!r}")
    candidates = [place for path in layers for place in (*_within(path), f"{path.rpartition('.')[0]}.output.dense")]
    found = next((parts[path] for path in candidates if path in parts), None)
    if any(_is_gated(parts[path], found) for path in layers):
        raise ValueError(
            f"site: expected a layer that hands what its heads write to its projection, got {site!r}, whose gate "
            "multiplies it first: contributions would leave the gate out"
        )
    if isinstance(found, nn.Linear):
        return found
    if type(found).__name__ != "Conv1D" or found is None:
        raise ValueError(f"site: expected a layer with an output projection, got {site!r}, where none was found")
    transposed = nn.Linear(*found.weight.shape, bias=False, device="meta")  # type: ignore[arg-type]
    transposed.weight = nn.Parameter(found.weight.detach().T, requires_grad=False)  # type: ignore[union-attr]
    return transposed


def _is_gated(layer: nn.Module, projection: nn.Module | None) -> bool:
    """Whether a layer projects to queries and a gate together, twice as wide as its heads (Qwen3-Next)."""
    sizes = [getattr(getattr(layer, name, None), "out_features", None) for name in ("q_proj", "k_proj", "v_proj")]
    # Where keys are wider than values, as in multi-head latent attention, the width says nothing.
    return None not in sizes and sizes[1] == sizes[2] and sizes[0] == 2 * getattr(projection, "in_features", 0)


def hands_on_values(model: nn.Module, site: str) -> bool:
    """Whether the layer at a site has no output projection: additive attention ends with sum_j a_ij v_j."""
    return any(isinstance(part, AdditiveAttention) and site_of(part) == site for part in model.modules())


def _within(layer: str) -> list[str]:
    """Return the possible paths of a layer's own projection."""
    return [f"{layer}.{name}" for name in _NAMES]
