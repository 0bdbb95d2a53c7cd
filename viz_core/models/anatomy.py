"""The parts of a model: its steps, parameters by part, and output projections by site."""

from collections import Counter
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention import AdditiveAttention
from viz_core.models.transformer import TransformerEncoder
from viz_core.trace import find_sites, record, site_of
from viz_core.trace.passes import every_site, named_sites
from viz_core.trace.sites import projections

# The steps of a block, each with its name among the states of a trace.
_PARTS = {"attention": "attention", "addnorm1": "residual_attention", "ffn": "mlp", "addnorm2": "residual"}


class Step(NamedTuple):
    """One intermediate result of the encoder."""

    name: str  # "embedding", "scaled", "positioned"; of each block "attention", "addnorm1", "ffn", "addnorm2"; "norm"
    block: int | None
    output: Float[Tensor, "batch n d"]


@torch.inference_mode()
def encoder_steps(
    encoder: TransformerEncoder, X: Int[Tensor, "batch n"], valid_lens: Int[Tensor, " batch"] | None = None
) -> tuple[Step, ...]:
    """Return every intermediate result of `encoder(X, valid_lens)` in evaluation mode; the last step is its output.

    H_0 = sqrt(d) E[x] + P;  Y = LN(H + attention(H, H, H));  H' = LN(Y + ffn(Y))   (Vaswani 2017, section 3.1)

    With norms first, the inputs of attention and ffn are LN(H) and LN(Y), and "norm" is the last step.
    """
    with record(states=True) as trace:
        output = encoder(X, valid_lens)
    embedded = {"embedding": encoder.embedding(X), "scaled": encoder.embed(X)}
    whole = embedded | {"positioned": trace.states["encoder.embedding"], "norm": output}
    return tuple(
        Step(name, i, whole[name] if i is None else trace.states[f"encoder.{i}.{_PARTS[name]}"])
        for name, i in step_names(encoder)
    )


def step_names(encoder: TransformerEncoder) -> tuple[tuple[str, int | None], ...]:
    """Return name and block of every step of `encoder_steps`, in order, without computing it."""
    first = [(name, None) for name in ("embedding", "scaled", "positioned")]
    last = [("norm", None)] if not isinstance(encoder.norm, nn.Identity) else []
    return (*first, *((name, block) for block in range(len(encoder.blocks)) for name in _PARTS), *last)


def mean_norms(steps: tuple[Step, ...]) -> list[float]:
    """Return the mean norm of the token vectors at each step: (1/n) sum_i |h_i|."""
    return [float(step.output.norm(dim=-1).mean()) for step in steps]


def parameters_by_part(model: nn.Module) -> dict[str, int]:
    """Return the number of parameters of each part of an encoder-decoder; a shared matrix counts where it is first.

    Parts are "embedding", "encoder.attention", "encoder.ffn", "decoder.self", "decoder.cross", "decoder.ffn",
    "norms" and "output".
    """
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        counts[_part(name)] += parameter.numel()
    return counts


def _part(name: str) -> str:
    side = name.split(".")[0]
    named = {
        ".embedding.": "embedding",
        ".addnorm": "norms",
        ".attention1.": "decoder.self",
        ".attention2.": "decoder.cross",
        ".attention.": f"{side}.attention",
        ".ffn.": f"{side}.ffn",
    }
    return next((part for mark, part in named.items() if mark in name), "output")


def output_projection(model: nn.Module, site: str) -> Any:
    """Return W_o of the attention layer at a site, with its adapters or quantised; GPT-2's as a Linear.

    It has one of the usual names within the layer, or, as in BERT, beside it: `attention.self` is followed by
    `attention.output.dense`. The innermost layer of a site comes first. ValueError if there is no such site, or no
    projection is found there.
    """
    parts, name = dict(model.named_modules()), site.partition("@")[0]  # "encoder.0.self@2" is that layer called again
    for sites in (named_sites(model), find_sites(model)):  # the second of a model of plain PyTorch
        calls = every_site(model, sites)
        layers = sorted((path for path, part in parts.items() if name in calls.get(part, ())), key=len, reverse=True)
        if layers:
            break
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
