"""Intermediate results of a Transformer encoder, and its parameters by part."""

from collections import Counter
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.models.transformer import TransformerEncoder
from viz_core.trace import record

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
