"""Position schemes of a loaded model, with their values and what the lab draws of them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.hub.transformers_internals import alibi_bias
from viz_core.positional import t5_relative_position_bucket
from viz_core.trace import stack_of

Scheme: TypeAlias = str
"""A name in `viz_core.positional.BY_NAME`."""


@dataclass(frozen=True, eq=False)
class Positions:
    """One position scheme of a model.

    Attributes:
        scheme: which one.
        where: the place in the model, like "encoder.block.0.layer.0.SelfAttention.relative_attention_bias".
        stack: "encoder" or "decoder"; "vision" where a tower for pictures stands beside.
        values: float32 on the CPU.
            learned, sinusoidal: the table (positions, width), first position first;
            rotary: radians per token of each pair (pairs,), the fastest first;
            t5: the bias (buckets, heads);
            alibi: the slope of each head (heads,).
        num_special: rows of a picture's table before its patches (class token and the like).
        bidirectional, max_distance: of T5's buckets.
    """

    scheme: Scheme
    where: str
    stack: str
    values: Float[Tensor, "..."]
    num_special: int = 0
    bidirectional: bool = True
    max_distance: int = 0


def find_positions(model: Any, only_stack: str | None, is_picture: bool) -> tuple[Positions, ...]:
    """All position schemes of a model in module order; a table that stacks share comes once."""
    found: list[Positions] = []
    for path, module in model.named_modules():
        stack = stack_of(path, only_stack)
        for positions in _of_module(path, module, stack, is_picture):
            if not any(_is_same(positions, other) for other in found):
                found.append(positions)
    rows = alibi_bias(model.config)
    if rows is not None:  # slopes as the model's own code makes them: the bias of the second key less that of the first
        found.append(Positions("alibi", "", only_stack or "decoder", (rows[:, 1] - rows[:, 0]).float()))
    return tuple(replace(each, values=each.values.detach().float().cpu().clone()) for each in found)


def _of_module(path: str, module: nn.Module, stack: str, is_picture: bool) -> Iterator[Positions]:
    name = path.split(".")[-1]
    kind = type(module).__name__
    bias = getattr(module, "relative_attention_bias", None)
    if isinstance(bias, nn.Embedding):
        distance = getattr(module, "relative_attention_max_distance", 128)
        both_ways = not getattr(module, "is_decoder", False)
        where = f"{path}.relative_attention_bias"
        yield Positions("t5", where, stack, bias.weight, bidirectional=both_ways, max_distance=distance)
    if "SinusoidalPositionalEmbedding" in kind:
        table: Any = module.weights if hasattr(module, "weights") else module.weight
        yield Positions("sinusoidal", path, stack, table[_reserved(module) :])
    elif isinstance(module, nn.Embedding) and ("position" in name or name in ("wpe", "embed_pos")):
        table = module.weight[_reserved(module) :]
        yield Positions("learned", path, stack, table, num_special=_beyond_square(len(table)) if is_picture else 0)
    for part, values in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
        where = f"{path}.{part}".lstrip(".")
        if part.endswith("inv_freq") and "original" not in part:
            yield Positions("rotary", where, stack, values)
        elif is_picture and part in ("position_embeddings", "position_embedding", "pos_embed") and values.dim() == 3:
            yield Positions("learned", where, stack, values[0], num_special=_beyond_square(values.shape[1]))


def _beyond_square(rows: int) -> int:
    """Rows of a picture's table that are not patches of a square."""
    return rows - math.isqrt(rows) ** 2


def _is_same(positions: Positions, other: Positions) -> bool:
    """Whether these are the same numbers: one table two stacks share, or one set of frequencies in every layer."""
    if positions.values.shape != other.values.shape or positions.scheme != other.scheme:
        return False
    if positions.scheme == "rotary":
        return positions.stack == other.stack and torch.equal(positions.values, other.values)
    return positions.values.data_ptr() == other.values.data_ptr()


def _reserved(table: Any) -> int:
    """Number of rows that no position uses: two in BART and OPT, those up to padding in RoBERTa, none in Marian."""
    if hasattr(table, "offset"):
        return int(table.offset)
    is_sinusoidal = "Sinusoidal" in type(table).__name__
    return 0 if is_sinusoidal or table.padding_idx is None else int(table.padding_idx) + 1


MAX_ROWS = 512
"""Rows of a table of positions that are measured and drawn."""


def cosines(table: Float[Tensor, "positions width"]) -> Float[Tensor, "positions positions"]:
    """Cosines of the first rows, p_i . p_j / (|p_i| |p_j|), after the mean row, which all share, is subtracted."""
    rows = F.normalize(table[:MAX_ROWS] - table.mean(dim=0), dim=1)
    return rows @ rows.T


def wavelengths(frequencies: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
    """Tokens per full rotation of each pair, 2 pi / omega."""
    return 2 * math.pi / frequencies.clamp_min(1e-12)


def bias_by_offset(
    values: Float[Tensor, "buckets heads"], bidirectional: bool, max_distance: int, reach: int
) -> Float[Tensor, "heads offsets"]:
    """T5's bias for keys from `reach` before the query to `reach` after it; up to the query if it reads one way."""
    offsets = torch.arange(-reach, reach + 1 if bidirectional else 1)
    buckets = t5_relative_position_bucket(offsets, bidirectional, len(values), max_distance)
    return values[buckets].T.contiguous()
