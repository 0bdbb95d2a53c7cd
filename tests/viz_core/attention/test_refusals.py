"""What attention, positions and models cannot compute, and the words that say so."""

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from viz_core.attention import (
    AdditiveAttention,
    DotProductAttention,
    MultiHeadAttention,
    boxcar,
    gaussian,
    masked_softmax,
    nadaraya_watson,
)
from viz_core.attention.kernel_pooling import with_width
from viz_core.attention.linear import LinearOperator, delta_rule, gated_decay, linear_attention, retention
from viz_core.attention.scores import batch_product, general_scores, scaled_dot_scores
from viz_core.models import (
    AddNorm,
    BlockOptions,
    EncoderDecoder,
    RNNSearchDecoder,
    Seq2SeqEncoder,
    TransformerDecoder,
    TransformerEncoder,
    ViT,
)
from viz_core.models.decoding_step import begin_decoding
from viz_core.models.vit import interpolate_positions, resize_grid
from viz_core.positional import (
    AbsolutePositionEmbedding1d,
    ALiBi,
    LearnedPositionalEmbedding,
    PositionalEncoding,
    RelativePositionEmbedding1d,
    RelativePositionEmbedding2d,
    Rotary,
    T5RelativeBias,
    angular_frequencies,
    apply_rotary,
    relative_positions,
    relative_projection,
    relative_to_absolute,
    t5_relative_position_bucket,
)
from viz_core.positional.kerple import KerpleLog
from viz_core.trace import attend, record_weights

Row = tuple[Callable[[], Any], str]

zeros, ones = torch.zeros, torch.ones
Q, K, V = zeros(2, 3, 4), zeros(2, 7, 5), zeros(2, 7, 6)
X = zeros(2, 3, 24)
LENGTHS = torch.tensor([3, 2])
BLOCKS = (9, 8, 12, 2, 1, 0.0)
VIT = {"img_size": 12, "patch_size": 4, "num_hiddens": 16, "mlp_num_hiddens": 24, "num_heads": 2, "num_blks": 2}
VIT |= {"emb_dropout": 0, "blk_dropout": 0}


def multi_head(**options: Any) -> MultiHeadAttention:
    return MultiHeadAttention(**{"num_hiddens": 24, "num_heads": 4, **options})


def of_three_widths(queries: Tensor = Q, keys: Tensor = K, values: Tensor = V, lengths: Tensor | None = None) -> Tensor:
    return MultiHeadAttention(8, 2, query_size=4, key_size=5, value_size=6)(queries, keys, values, lengths)


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32)[None, None, :, None]


def gates(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32)[None, None]


def linear() -> LinearOperator:
    return linear_attention(column(1), column(1))


def pooled(keys: int = 2, values: int = 2, kernel: Any = boxcar) -> Any:
    return nadaraya_watson(torch.arange(float(keys)), zeros(values), zeros(1), kernel)


def attended(**given: Any) -> Tensor:
    inputs = dict.fromkeys(("queries", "keys", "values"), (2, 1, 3, 4)) | given
    return attend(**{name: zeros(each) if isinstance(each, tuple) else each for name, each in inputs.items()})


def step_past_the_table() -> None:
    decoder = TransformerDecoder(*BLOCKS).eval()
    step, state = begin_decoding(decoder, zeros(1, 4, 8), torch.tensor([4]))
    step(zeros(1, 1, dtype=torch.long), state._replace(num_steps=1000))  # type: ignore[attr-defined]


ATTENTION: list[Row] = [
    (lambda: attended(queries=(3, 4)), "(batch, heads, n, width), got [(3, 4)"),
    (lambda: attended(keys=(2, 1, 3, 5)), "queries and keys of one width, got 4 and 5"),
    (lambda: attended(queries=(1, 1, 3, 4)), "queries and keys of one batch size, got 1 and 2"),
    (lambda: attended(values=(2, 1, 2, 4)), "one value for each key, got shapes (2, 1, 3, 4) and"),
    (lambda: attended(keys=(2, 3, 3, 4), values=(2, 3, 3, 4), queries=(2, 4, 3, 4)), "key heads to divide query heads"),
    (lambda: attended(keys=(2, 0, 3, 4), values=(2, 0, 3, 4)), "key heads to divide query heads, got 0 and 1"),
    (lambda: attended(keys=zeros(2, 1, 3, 4).half()), "of one dtype, got queries torch.float32, keys torch.float16"),
    (lambda: attended(values=zeros(2, 1, 3, 4, device="meta")), "of one device, got keys cpu, values meta"),
    (lambda: attended(mask=zeros(3, 3)), "mask: expected booleans"),
    (lambda: attended(mask=ones(2, 1, 3, 4) > 0), "broadcasts to (2, 1, 3, 3), got (2, 1, 3, 4)"),
    (
        lambda: attended(bias=ones(2, 2, 3, 3)),
        "bias: expected a shape that broadcasts to (2, 1, 3, 3), got (2, 2, 3, 3)",
    ),
    (lambda: attended(bias=ones(2, 1, 3, 3) > 0), "booleans are a mask"),  # would add 1 where a query may look
    (lambda: attended(bias=zeros(2, 1, 3, 3).to(torch.complex64)), "bias: expected floating-point"),
    *(
        (lambda softcap=softcap: attended(softcap=softcap), "softcap: expected a positive number")
        for softcap in (0.0, -1.0, math.nan)
    ),
    (lambda: attended(scale=math.nan), "scale: expected a finite number, got nan"),
    (lambda: attended(scale=torch.tensor(0.5)), "scale: expected a finite number, got float32"),
    (lambda: attended(dropout=-1), "dropout: expected a number from 0 to 1, got -1"),  # torch's kernel took it for 0
    (lambda: attended(dropout=math.nan), "dropout: expected a number from 0 to 1, got nan"),
    (lambda: record_weights(zeros(1, 3, 3)), "weights: expected (batch, heads, queries, keys), got shape (1, 3, 3)"),
    (lambda: masked_softmax(zeros(3, 4)), "scores: expected (batch, queries, keys), got shape (3, 4)"),
    (lambda: masked_softmax(X, torch.tensor([1, 2, 3])), "valid_lens: expected shape (2,) or (2, 3), got (3,)"),
    (lambda: masked_softmax(X, torch.tensor([-3, 1])), "got -3 to 1"),
    (lambda: masked_softmax(X, torch.tensor([1, 25])), "got 1 to 25"),
    (lambda: masked_softmax(X, torch.tensor([2.5, 1.0])), "got float32 of shape (2,)"),
    (lambda: masked_softmax(X, ones(2, 24) > 0), "got bool of shape (2, 24); a mask goes to attend"),
    (lambda: of_three_widths(queries=K), "queries: expected shape (batch, n, 4), got (2, 7, 5)"),
    (lambda: of_three_widths(keys=Q), "keys: expected shape (batch, n, 5), got (2, 3, 4)"),
    (lambda: of_three_widths(values=V[0]), "values: expected shape (batch, n, 6), got (7, 6)"),
    (lambda: of_three_widths(values=V[:, :4]), "expected one value for each key, got shapes"),
    (lambda: of_three_widths(keys=K[:1], values=V[:1]), "expected queries and keys of one batch size, got 2 and 1"),
    (lambda: of_three_widths(lengths=ones(2, 7).long()), "valid_lens: expected shape (2,) or (2, 3), got (2, 7)"),
    (lambda: multi_head(num_heads=5), "num_heads: expected a divisor of num_hiddens=24, got 5"),
    (lambda: multi_head(num_key_heads=3), "num_key_heads: expected a divisor of num_heads=4, got 3"),
    (lambda: multi_head(num_key_heads=8), "num_key_heads: expected a divisor of num_heads=4, got 8"),
    (lambda: multi_head(softcap=math.nan), "softcap: expected a positive number, got nan"),
    (lambda: multi_head(dropout=2.0), "dropout: expected a number from 0 to 1, got 2.0"),
    (lambda: multi_head(positions="rotary"), "positions: expected a scheme, as"),
    (
        lambda: multi_head()(X, X, X, LENGTHS, mask=ones(2, 1, 3) > 0),
        "mask: expected a shape that broadcasts to (2, 4, 3, 3), got (2, 1, 3)",
    ),
    (lambda: multi_head()(X, X, X, LENGTHS, mask=ones(1, 1, 1, 3)), "mask: expected booleans"),
    (lambda: multi_head()(X, X, X, bias=zeros(4, 3, 2)), "bias: expected a shape that broadcasts to (2, 4, 3, 3)"),
    *(
        (lambda options=options: multi_head(**options)(X, X[:, :2], X[:, :2]), message)
        for options, message in (
            ({"window": 2}, "num_keys: expected at least num_queries=3, got 2"),
            ({"positions": ALiBi()}, "num_keys: expected at least num_queries=3, got 2"),
            ({"positions": Rotary()}, "expected at least 0, with as many keys as queries or more, got -1"),
        )
    ),
    (lambda: MultiHeadAttention(20, 4, positions=Rotary())(*3 * [X[..., :20]]), "n, d) with an even d"),
    (lambda: AdditiveAttention(4, 5, 7)(K, K, K), "queries: expected shape (batch, n, 4), got (2, 7, 5)"),
    (lambda: AdditiveAttention(4, 5, 7)(Q, Q, Q), "keys: expected shape (batch, n, 5), got (2, 3, 4)"),
    (lambda: AdditiveAttention(4, 5, 7)(Q, K, Q), "expected one value for each key, got shapes"),
    (lambda: DotProductAttention()(Q, K, V), "expected queries and keys of one width, got 4 and 5"),
    (lambda: DotProductAttention()(X, X[:1], X[:1]), "expected queries and keys of one batch size, got 2 and 1"),
    (lambda: DotProductAttention()(X, X, X, LENGTHS[:1]), "valid_lens: expected shape (2,) or (2, 3), got (1,)"),
    (lambda: batch_product(Q, K), "expected as many columns in X as rows in Y, got 4 and 7"),
    (lambda: batch_product(Q, Q[:1].mT), "expected batches of one size, got 2 and 1"),
    (lambda: batch_product(Q[0], K[0]), "expected two batches of matrices, got shapes (3, 4) and (7, 5)"),
    (lambda: scaled_dot_scores(Q, K), "expected queries and keys of one width, got 4 and 5"),
    (lambda: general_scores(Q, K, zeros(5, 4)), "M: expected shape (4, 5), got (5, 4)"),
    (lambda: linear_attention(ones(1, 1, 2, 3), ones(1, 1, 2, 4)), "of one shape"),
    (lambda: linear_attention(*[ones(1, 1, 0, 3)] * 2), "at least one token"),
    (lambda: linear_attention(column(1), column(1), torch.tensor([2])), "from 0 to 1"),
    (lambda: linear_attention(column(1), column(1), torch.tensor([[1]])), "each batch row"),
    (lambda: gated_decay(column(1), column(1), gates(0.1)), "at most 0"),
    (lambda: delta_rule(column(1), column(1), gates(math.nan)), "finite"),
    (lambda: delta_rule(column(1), column(1), gates(1, 1)), "expected shape"),
    (lambda: retention(column(1), column(1), torch.tensor([1.5])), "at most 1"),
    (lambda: retention(column(1), column(1), torch.tensor([0.5, 0.5])), "one for each"),
    (lambda: retention(ones(2, 3), ones(2, 3)), "expected"),
    (lambda: linear().recurrent(column(1, 2)), "values: expected shape"),
    (lambda: linear().recurrent(column(1).double()), "one dtype"),
    (lambda: linear().chunked(column(1), 0), "at least 1"),
    (lambda: linear().masked(ones(1, 2).bool()), "mask: expected shape"),
    (lambda: pooled(keys=0, values=0), "at least one key, got none"),
    (lambda: pooled(values=1), "one value for each key, got keys (2,), values (1,) and queries (1,)"),
    (lambda: nadaraya_watson(zeros(2, 3), zeros(2), zeros(1, 2), boxcar), "one width, got keys (2, 3), values (2,)"),
    (lambda: nadaraya_watson(zeros(2), zeros(2), zeros(1, 2), boxcar), "expected a number or a vector"),
    (lambda: pooled(kernel=lambda u: -torch.ones_like(u)), "kernel: expected finite values of at least 0, got -1"),
    (lambda: pooled(kernel=lambda u: 1 / u), "kernel: expected finite values of at least 0, got inf"),  # at the key
    (lambda: pooled(kernel=lambda u: u * torch.nan), "kernel: expected finite values of at least 0, got nan"),
    (lambda: pooled(kernel=lambda u: u[:, :1]), "kernel: expected a value for each of (1, 2), got float32 of shape"),
    (lambda: pooled(kernel=lambda _: None), "kernel: expected a value for each of (1, 2), got NoneType"),
    *((lambda width=width: gaussian(width), "sigma: expected a positive number") for width in (0, -1, math.inf)),
    (lambda: with_width(boxcar, math.nan), "width: expected a positive number"),
]

HEADS = zeros(1, 2, 3, 4)
POSITIONS: list[Row] = [
    (lambda: relative_to_absolute(zeros(2, 3, 6)), "scores: expected (..., n, 2n - 1)"),
    (lambda: relative_to_absolute(zeros(0, 0)), "scores: expected (..., n, 2n - 1)"),
    (lambda: RelativePositionEmbedding1d(4, 4)(HEADS), "q: expected shape (batch, heads, 4, 4), got (1, 2, 3, 4)"),
    (lambda: RelativePositionEmbedding1d(3, 4, num_heads=3)(HEADS), "q: expected shape (batch, 3, 3, 4)"),
    (lambda: RelativePositionEmbedding1d(3, 4).bias(HEADS, 4), "num_keys: expected at most num_tokens=3, got 4"),
    (lambda: RelativePositionEmbedding1d(3, 4).bias(HEADS, 1), "num_keys: expected at least num_queries=3, got 1"),
    (lambda: RelativePositionEmbedding1d(3, 5).bias(HEADS, 3), "q: expected shape (batch, heads, queries, 5)"),
    (lambda: AbsolutePositionEmbedding1d(4, 4)(HEADS), "q: expected shape (batch, heads, 4, 4)"),
    (lambda: AbsolutePositionEmbedding1d(3, 4).bias(HEADS, 4), "num_keys: expected at most num_tokens=3, got 4"),
    (lambda: RelativePositionEmbedding2d(2, 3, 4, 2)(HEADS), "q: expected shape (batch, 2, 6, 4)"),
    (lambda: RelativePositionEmbedding2d(1, 3, 4).bias(HEADS, 4), "num_keys: expected 1 x 3 tokens, got 4"),
    (lambda: RelativePositionEmbedding2d(0, 3, 4), "height: expected at least 1, got 0"),
    (lambda: LearnedPositionalEmbedding(7, 4)(Q, 6), "at most max_len=7 positions, got 9"),
    (lambda: LearnedPositionalEmbedding(7, 4)(Q, -1), "offset: expected at least 0, got -1"),
    (lambda: LearnedPositionalEmbedding(7, 4)(Q[..., :1]), "X: expected width 4, got shape (2, 3, 1)"),
    (lambda: PositionalEncoding(4, max_len=10)(Q, 8), "at most max_len=10 positions, got 11"),
    (lambda: PositionalEncoding(4, max_len=10)(Q, -1), "offset: expected at least 0, got -1"),
    (lambda: PositionalEncoding(4, max_len=10)(Q[..., :1]), "expected width 4"),
    (lambda: angular_frequencies(4, 0.0), "base: expected a positive number"),
    (lambda: angular_frequencies(4, math.nan), "base: expected a positive number"),
    (lambda: relative_projection(math.inf, 4), "offset: expected a finite number, got inf"),
    (lambda: relative_projection(1, 4, 0.0), "base: expected a positive number, got 0"),
    (lambda: apply_rotary(HEADS[..., :3], torch.arange(3)), "even d, got shape (1, 2, 3, 3)"),
    (lambda: apply_rotary(HEADS, torch.arange(3), base=-1.0), "base: expected a positive number, got -1"),
    *(
        (lambda shape=shape: apply_rotary(HEADS, zeros(shape)), "positions: expected shape (3,) or (1, 3), got ")
        for shape in ((1,), (4,), (2, 3), (1, 3, 1), ())
    ),
    (lambda: Rotary().rotate(HEADS, -1), "start: expected at least 0, with as many keys as queries or more, got -1"),
    (lambda: Rotary(base=0), "base: expected a positive number, got 0"),
    (lambda: ALiBi().bias(HEADS, 2), "num_keys: expected at least num_queries=3, got 2"),
    (lambda: KerpleLog(8).bias(HEADS, 3), "q: expected shape (batch, 8, queries, d), got (1, 2, 3, 4)"),
    (lambda: T5RelativeBias(2).bias(HEADS, 2), "num_keys: expected at least num_queries=3, got 2"),
    (lambda: T5RelativeBias(8).bias(HEADS, 3), "q: expected shape (batch, 8, queries, d), got (1, 2, 3, 4)"),
    (lambda: T5RelativeBias(2, 32, 8), "max_distance: expected more than 8, below which buckets are exact, got 8"),
    (lambda: T5RelativeBias(2, 32, 16, bidirectional=False), "max_distance: expected more than 16"),
    (lambda: t5_relative_position_bucket(torch.arange(3), True, 3, 128), "num_buckets: expected at least 4, got 3"),
    (lambda: t5_relative_position_bucket(torch.arange(3), False, 1, 128), "num_buckets: expected at least 2, got 1"),
    (lambda: relative_positions(0, 3), "num_queries: expected at least 1, got 0"),
    (lambda: relative_positions(3, 2), "num_keys: expected at least num_queries=3, got 2"),
]

MODELS: list[Row] = [
    *(
        (lambda changes=changes: ViT(**{**VIT, **changes}), message)
        for changes, message in (
            ({"img_size": (12, 10)}, "patches of 4 x 4 pixels divide, got 12 x 10"),
            ({"img_size": 0}, "img_size: expected one number or (height, width), each at least 1, got 0"),
            ({"patch_size": (4, 4, 4)}, "patch_size: expected one number"),
            ({"num_heads": 3}, "num_heads: expected a divisor of num_hiddens=16, got 3"),
        )
    ),
    *(
        (lambda shape=shape: ViT(**VIT)(zeros(shape)), message)
        for shape, message in (
            ((1, 1, 12, 12), "expected pictures of shape (batch, 3, height, width), got (1, 1, 12, 12)"),
            ((3, 12, 12), "expected pictures of shape"),
            ((1, 3, 12, 14), "divide, got 12 x 14"),
            ((1, 3, 0, 12), "divide, got 0 x 12"),
        )
    ),
    (lambda: interpolate_positions(zeros(1, 9, 2), (3, 3), (2, 2)), "expected 1 + 3 x 3 positions, got 9"),
    (lambda: resize_grid(zeros(48, 8), (7, 7), (6, 8)), "expected 7 x 7 positions, got 48"),
    *(
        (lambda scheme=scheme: TransformerEncoder(*BLOCKS, options=BlockOptions(positions=scheme)), "expected a scheme")
        for scheme in ("rotary", PositionalEncoding(8, 0.0), lambda: 3)
    ),
    (
        lambda: TransformerDecoder(*BLOCKS, options=BlockOptions(num_key_heads=4)),
        "num_key_heads: expected a divisor of num_heads=2, got 4",
    ),
    (
        lambda: TransformerEncoder(*BLOCKS, options=BlockOptions(positions=RelativePositionEmbedding1d(4, 4)))(
            zeros(1, 5, dtype=torch.long)
        ),
        "num_keys: expected at most num_tokens=4, got 5",
    ),
    (lambda: TransformerEncoder(*BLOCKS)(zeros(1, 1001, dtype=torch.long)), "at most max_len=1000 positions, got 1001"),
    (step_past_the_table, "max_len=1000"),
    (lambda: AddNorm(4, 0.0)(zeros(2, 4), zeros(1, 4)), "expected X and Y of one shape, got (2, 4) and (1, 4)"),
    (
        lambda: EncoderDecoder(Seq2SeqEncoder(9, 5, 6, 1), RNNSearchDecoder(9, 5, 6, 1))(
            zeros(2, 3, dtype=torch.long), zeros(2, 2, dtype=torch.long)
        ),
        "enc_outputs: expected",
    ),
]


@pytest.mark.parametrize(("call", "message"), [*ATTENTION, *POSITIONS, *MODELS])
@pytest.mark.usefixtures("shapes_unchecked")
def test_what_cannot_be_computed_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
