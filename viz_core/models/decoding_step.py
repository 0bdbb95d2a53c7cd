"""A step of the Transformer's decoder for one token a row, without what only a look inside needs.

Such a step is some thirty small operations a layer. Checking shapes, finding sites, and asking who records or edits
takes longer than computing them. A search needs none of it: maps are recorded in one pass over its result.

What is left is mostly reading the weights, so those that are stored as float16 are read as float16.
"""

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from viz_core.attention.masking import length_mask
from viz_core.attention.multi_head import KeysValues, MultiHeadAttention
from viz_core.models.transformer import AddNorm, PositionWiseFFN
from viz_core.models.transformer_decoder import TransformerDecoder, TransformerDecoderBlock
from viz_core.positional.entry import PositionScheme
from viz_core.positional.sinusoidal import PositionalEncoding
from viz_core.trace.arguments import is_autocast_on, version
from viz_core.trace.attend import attend_unobserved, is_observed
from viz_core.trace.states import has_foreign_hooks

Step: TypeAlias = Callable[[Int[Tensor, "rows 1"], Any], tuple[Float[Tensor, "rows 1 vocab"], Any]]
"""The logits after one more token in each row, and the state after it."""

_BOOK = {TransformerDecoder, TransformerDecoderBlock, MultiHeadAttention, PositionScheme, AddNorm, PositionWiseFFN}
_BOOK |= {PositionalEncoding, nn.Sequential, nn.Embedding, nn.Linear, nn.LayerNorm, nn.ReLU, nn.Dropout, nn.Identity}

_NUM_PRODUCTS = 6
"""Products with matrices in a block: see `_linear_layers`."""
_MAX_ROWS = 32
"""Rows times threads up to which a product of one thread, over half the bytes, is faster than torch's of all."""


class StepState(NamedTuple):
    """State of `plain_step`: keys and values of each block's self-attention so far, and of its cross-attention."""

    num_steps: int
    own: tuple[Float[Tensor, "rows 2 heads steps d"], ...]
    cross: tuple[Float[Tensor, "rows 2 heads keys d"], ...]
    allowed: Bool[Tensor, "rows 1 1 keys"] | None  # False where a key of cross-attention is padding

    def select(self, rows: Int[Tensor, " rows"]) -> "StepState":
        """Return the state of these batch rows, in this order, as beam search selects them."""
        own, cross = (tuple(each[rows] for each in pairs) for pairs in (self.own, self.cross))
        return StepState(self.num_steps, own, cross, None if self.allowed is None else self.allowed[rows])


def begin_decoding(decoder: Any, enc_outputs: Any, valid_lens: Int[Tensor, " rows"]) -> tuple[Step, Any]:
    """Return what computes a step of the decoder, for one token a row, and the state before the first step.

    It is `plain_step` where that gives what the decoder does, and the decoder where heads or states are recorded or
    edited, in training, under autocast, and where it is no `TransformerDecoder` as in the book, or has hooks or modules
    of someone's own.
    """
    state = decoder.init_state(enc_outputs, valid_lens)
    if not (isinstance(decoder, TransformerDecoder) and _is_plain(decoder)):
        return decoder, state
    rows, num_keys = enc_outputs.shape[:2]
    own, cross = [], []
    for block in decoder.blocks:
        projected: KeysValues = block.attention2.project(enc_outputs, enc_outputs)
        cross.append(torch.stack(projected, dim=1))
        own.append(projected.keys.new_empty(rows, 2, block.attention1.num_heads, 0, block.attention1.head_dim))
    allowed = length_mask(valid_lens, rows, 1, num_keys)[:, None]
    return plain_step(decoder, rows), StepState(0, tuple(own), tuple(cross), None if bool(allowed.all()) else allowed)


def plain_step(decoder: TransformerDecoder, rows: int = 1) -> Step:
    """Return the step of a decoder whose blocks are the book's, by the weights that it has now.

    Y = LN(x + self(x)), Z = LN(Y + cross(Y)), then LN(Z + W_2 relu(W_1 Z + b_1) + b_2) in each block, and W h + b.

    Args:
        rows: how many rows it begins with, by which the product with a matrix is chosen; results agree to rounding.
    """
    E = decoder.embedding.weight
    P = cast(PositionalEncoding, decoder.pos_encoding).P[0].to(E)
    scale, (product, weights) = decoder.embed_scale, _products(decoder, rows)
    layers = [
        (*_sizes_and_norms(block), *weights[_NUM_PRODUCTS * i : _NUM_PRODUCTS * (i + 1)])
        for i, block in enumerate(decoder.blocks)
    ]

    def step(X: Int[Tensor, "rows 1"], state: StepState) -> tuple[Float[Tensor, "rows 1 vocab"], StepState]:
        if state.num_steps >= len(P):
            raise ValueError(f"sequence length: expected at most max_len={len(P)} positions, got {len(P) + 1}")
        H, own = F.embedding(X[:, 0], E) * scale + P[state.num_steps], []
        for (split, norm1, norm2, norm3, W_qkv, W_o, V_q, V_o, W_1, W_2), past, cross in zip(
            layers, state.own, state.cross, strict=True
        ):
            projected = product(H, *W_qkv).view(split)
            past = torch.cat((past, projected[:, 1:]), dim=3)
            own.append(past)
            heads = attend_unobserved(projected[:, 0], past[:, 0], past[:, 1])
            H = F.layer_norm(H + product(heads.flatten(1), *W_o), *norm1)
            queries = product(H, *V_q).view(-1, *split[2:])
            heads = attend_unobserved(queries, cross[:, 0], cross[:, 1], state.allowed)
            H = F.layer_norm(H + product(heads.flatten(1), *V_o), *norm2)
            H = F.layer_norm(H + product(product(H, *W_1).relu_(), *W_2), *norm3)
        return product(H, *weights[-1])[:, None], state._replace(num_steps=state.num_steps + 1, own=tuple(own))

    return step


def _sizes_and_norms(block: TransformerDecoderBlock) -> tuple[Any, ...]:
    """The shape of queries, keys and values by head, then the arguments of each norm."""
    own, norms = block.attention1, (block.addnorm1.ln, block.addnorm2.ln, block.addnorm3.ln)
    arguments = ((norm.normalized_shape, norm.weight, norm.bias, norm.eps) for norm in cast(Any, norms))
    return (-1, 3, own.num_heads, 1, own.head_dim), *arguments


def _linear_layers(block: TransformerDecoderBlock) -> list[tuple[nn.Linear, ...]]:
    """The linear layers in the order of a step; those of one input stand together and are one product."""
    own, cross, ffn = block.attention1, block.attention2, cast(Any, block.ffn)
    return [(own.W_q, own.W_k, own.W_v), (own.W_o,), (cross.W_q,), (cross.W_o,), (ffn.dense1,), (ffn.dense2,)]


def _products(decoder: TransformerDecoder, rows: int) -> tuple[Callable[..., Tensor], list[tuple[Tensor, Any]]]:
    """Return the function for W x + b, and a decoder's matrices and biases for it, that of the vocabulary last."""
    groups = [*(group for block in decoder.blocks for group in _linear_layers(block)), (decoder.dense,)]
    biases = [None if one.bias is None else torch.cat([each.bias for each in (one, *more)]) for one, *more in groups]
    threads = torch.get_num_threads()
    packed = _packed(decoder, groups) if threads == 1 or rows * threads <= _MAX_ROWS else None
    if packed is not None:
        return torch.fbgemm_linear_fp16_weight_fp32_activation, list(zip(packed, biases, strict=True))
    return F.linear, list(zip(map(_joined, groups), biases, strict=True))


def _joined(layers: Sequence[nn.Linear]) -> Tensor:
    """The matrices of layers one below the other; by columns if their own are: see `lay_out_by_columns`."""
    weights = [layer.weight.t() for layer in layers]
    return (weights[0] if len(weights) == 1 else torch.cat(weights, dim=1)).t()


class _Packed(NamedTuple):
    places: list[Any]
    memory: list[Any]  # as long as it exists, no other weights take these places
    matrices: list[Tensor] | None


_packed_matrices = WeakKeyDictionary[TransformerDecoder, _Packed]()
_packing = threading.Lock()  # one thread packs for all, and filters warnings, which all share


def _packed(decoder: TransformerDecoder, groups: list[tuple[nn.Linear, ...]]) -> list[Tensor] | None:
    """A decoder's matrices as torch's product reads them in float16 and computes in float32.

    Packed once, and again when a weight has changed (a change through `.data` is not seen, as by torch). None where a
    weight is no float16 number, as in training, where gradients are wanted, and where torch has no such product for
    this device or processor.
    """
    weights = [layer.weight for group in groups for layer in group]
    if not all(weight.is_cpu for weight in weights):
        _packed_matrices.pop(decoder, None)  # of weights that were on the processor before
        return None
    if torch.is_grad_enabled() or any(version(weight) is None for weight in weights):
        return None
    places = [(weight.data_ptr(), weight.stride(), version(weight)) for weight in weights]
    with _packing:
        found = _packed_matrices.get(decoder)
        if found is None or found.places != places:
            memory = [weight.untyped_storage() for weight in weights]
            _packed_matrices[decoder] = found = _Packed(places, memory, _pack([_joined(group) for group in groups]))
    return found.matrices


def _pack(matrices: list[Tensor]) -> list[Tensor] | None:
    exact = (W.dtype == torch.float32 and torch.equal(W.half().float(), W) for W in matrices)
    if not all(exact):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says that a later version will do without them
            packed = [torch.fbgemm_pack_gemm_matrix_fp16(W.contiguous()) for W in matrices]
            W = matrices[0]
            torch.fbgemm_linear_fp16_weight_fp32_activation(W.new_zeros(1, W.shape[1]), packed[0], None)
    except (AttributeError, RuntimeError, TypeError):
        return None
    return packed


def _is_plain(decoder: TransformerDecoder) -> bool:
    """Whether a step may leave out everything around the decoder's operations."""
    weight = decoder.dense.weight
    if decoder.training or is_observed() or is_autocast_on(weight.device.type) or torch.compiler.is_compiling():
        return False
    parts = list(decoder.modules())
    known = all(type(part) in _BOOK and "forward" not in vars(part) and not has_foreign_hooks(part) for part in parts)
    return known and decoder.embedding.max_norm is None and all(map(_is_by_the_book, decoder.blocks))


def _is_by_the_book(block: TransformerDecoderBlock) -> bool:
    return not block.addnorm1.norm_first and all(
        layer.softcap is None and layer.window is None and layer.W_k.out_features == layer.W_q.out_features
        for layer in (block.attention1, block.attention2)
    )
