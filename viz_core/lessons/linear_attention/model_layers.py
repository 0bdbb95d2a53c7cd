"""How many layers of published models are linear attention, from the defaults of their configurations."""

from importlib import import_module
from typing import NamedTuple

CONFIGURATIONS = {
    "Mamba-2": ("mamba2", "Mamba2Config", "gated-decay"),
    "MiniMax": ("minimax", "MiniMaxConfig", "decay"),
    "Qwen3-Next": ("qwen3_next", "Qwen3NextConfig", "delta"),
    "Qwen3.5": ("qwen3_5", "Qwen3_5TextConfig", "delta"),
    "OLMo Hybrid": ("olmo_hybrid", "OlmoHybridConfig", "delta"),
}
"""By model: module and class in transformers, and its rule."""


class ModelLayers(NamedTuple):
    """Layers of a model, all together and those with linear attention."""

    model: str
    rule: str
    layers: int
    linear: int


def model_layers() -> tuple[ModelLayers, ...]:
    """Return the layers of every model of `CONFIGURATIONS`, counted in `layer_types` of its default configuration."""
    rows = []
    for model, (module, name, rule) in CONFIGURATIONS.items():
        configuration = import_module(f"transformers.models.{module}.configuration_{module}")
        types = list(getattr(configuration, name)().layer_types)
        rows.append(ModelLayers(model, rule, len(types), types.count("linear_attention")))
    return tuple(rows)
