"""The inside of multi-head attention: its inputs, every tensor on its way, and torch's own module."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.attention.multi_head import MultiHeadAttention
from viz_core.pretrained import Translator
from viz_core.pretrained.token_vectors import Tokens
from viz_core.trace import AttentionCall, Trace, attention_weights, name_site, record
from viz_core.trace.weights import causal_mask


@dataclass(frozen=True, eq=False)
class MultiHeadSteps:
    """Every tensor between input and output, in the order in which they are made; d = h w."""

    input: Float[Tensor, "batch n d"]
    queries: Float[Tensor, "batch n d"]
    keys: Float[Tensor, "batch n d"]
    values: Float[Tensor, "batch n d"]
    split_queries: Float[Tensor, "batch h n w"]
    split_keys: Float[Tensor, "batch h n w"]
    split_values: Float[Tensor, "batch h n w"]
    scores: Float[Tensor, "batch h n n"]
    masked: Float[Tensor, "batch h n n"]
    exponentials: Float[Tensor, "batch h n n"]
    weights: Float[Tensor, "batch h n n"]
    attended: Float[Tensor, "batch h n w"]
    concatenated: Float[Tensor, "batch n d"]
    output: Float[Tensor, "batch n d"]
    trace: Trace  # what the recorder kept of the layer's own call
    causal: bool = False

    @property
    def call(self) -> AttentionCall:
        """The layer's own call, as recorded."""
        return next(iter(self.trace))

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, in order."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: tensor for name, tensor in named.items() if isinstance(tensor, Tensor)}


@torch.no_grad()
def multi_head_steps(layer: MultiHeadAttention, X: Float[Tensor, "batch n d"], causal: bool = False) -> MultiHeadSteps:
    """Walk `layer(X, X, X, causal=causal)` step by step (Vaswani 2017, section 3.2.2).

    Q, K, V = W_q X, W_k X, W_v X, each cut into h heads of width w = d / h; head i is
    softmax(Q_i K_i^T / sqrt(w)) V_i; the heads side by side go through W_o.

    Each step is computed from the one before, so a wrong step cannot arrive at the layer's output: `walk_residual`.
    """
    with record(values=True) as trace:
        layer(X, X, X, causal=causal)
    queries, keys, values = layer.W_q(X), layer.W_k(X), layer.W_v(X)
    Q, K, V = (rearrange(t, "b n (h w) -> b h n w", h=layer.num_heads) for t in (queries, keys, values))
    scores = Q @ K.mT * Q.shape[-1] ** -0.5
    n = X.shape[1]
    masked = scores.masked_fill(~causal_mask(n, n, X.device), -torch.inf) if causal else scores
    exponentials = (masked - masked.amax(dim=-1, keepdim=True)).exp()
    weights = exponentials / exponentials.sum(dim=-1, keepdim=True)
    attended = weights @ V
    concatenated = rearrange(attended, "b h n w -> b n (h w)")
    output = layer.W_o(concatenated)
    softmax = (scores, masked, exponentials, weights)
    return MultiHeadSteps(
        X, queries, keys, values, Q, K, V, *softmax, attended, concatenated, output, trace, causal=causal
    )


def torch_multi_head(layer: MultiHeadAttention) -> nn.MultiheadAttention:
    """torch's own module with the parameters of ours: W_q, W_k and W_v stacked into one matrix."""
    width = layer.W_q.out_features
    bias = layer.W_q.bias is not None
    # Where the layer lives, in its number type, without drawing random numbers that are overwritten at once.
    theirs = nn.utils.skip_init(nn.MultiheadAttention, width, layer.num_heads, bias=bias, batch_first=True)
    theirs.to(layer.W_q.weight)
    projections = (layer.W_q, layer.W_k, layer.W_v)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in projections]))
        theirs.out_proj.weight.copy_(layer.W_o.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in projections]))
            theirs.out_proj.bias.copy_(layer.W_o.bias)
    return theirs.train(layer.training)


@torch.no_grad()
def walk_residual(layer: MultiHeadAttention, steps: MultiHeadSteps) -> float:
    """Whether the steps shown are those the layer takes, the larger of two: max |last step - layer's output|, and
    max |weights step by step - `attention_weights`| from queries and keys."""
    X = steps.input
    weights = attention_weights(steps.split_queries, steps.split_keys, causal=steps.causal)
    output = float((layer(X, X, X, causal=steps.causal) - steps.output).abs().max())
    return max(output, float((weights - steps.weights).abs().max()))


def rounding_bound(steps: MultiHeadSteps) -> float:
    """What float32 may lose between two ways of computing the same: 32 machine epsilons of the largest number met."""
    largest = max(float(t.masked_fill(t.isinf(), 0.0).abs().max()) for t in steps.tensors().values())
    return 32 * torch.finfo(torch.float32).eps * max(1.0, largest)


# From one seed, tokens and weights would be the same random numbers, and scores would show that.
_LAYER_SEEDS, _TOKEN_SEEDS, _WIDTH_SEED = 1_000_000, 2_000_000, 3_000_000


def fresh_layer(num_hiddens: int, num_heads: int, sharpness: float = 1.0, seed: int = 0) -> MultiHeadAttention:
    """A layer whose scores have standard deviation `sharpness` on tokens of unit variance, whatever its size.

    Entries are N(0, 1/d), so that projections keep the variance; W_q is multiplied by the sharpness.
    """
    generator = torch.Generator().manual_seed(_LAYER_SEEDS + seed)
    layer = MultiHeadAttention(num_hiddens, num_heads)
    with torch.no_grad():
        for linear in (layer.W_q, layer.W_k, layer.W_v, layer.W_o):
            linear.weight.normal_(std=num_hiddens**-0.5, generator=generator)
        layer.W_q.weight.mul_(sharpness)
    return layer.eval().requires_grad_(False)


def random_tokens(num_tokens: int, num_hiddens: int, seed: int = 0) -> Tokens:
    """Random tokens: vectors from N(0, I), named by their numbers."""
    X = torch.randn(num_tokens, num_hiddens, generator=torch.Generator().manual_seed(_TOKEN_SEEDS + seed))
    return Tokens(tuple(map(str, range(num_tokens))), X, 1, num_tokens, num_tokens)


def resize_width(X: Float[Tensor, "n d"], num_hiddens: int) -> Float[Tensor, "n num_hiddens"]:
    """Vectors in another width through one fixed random matrix with entries N(0, 1/d); unchanged where they fit.

    Products between vectors keep their expected value (Johnson and Lindenstrauss 1984): words that are alike stay so.
    """
    d = X.shape[1]
    if d == num_hiddens:
        return X
    return X @ torch.randn(d, num_hiddens, generator=torch.Generator().manual_seed(_WIDTH_SEED)) * d**-0.5


@torch.inference_mode()
def trained_input(translator: Translator, text: str, block: int, max_tokens: int) -> Tokens:
    """The input of one encoder block's self-attention for a text: tokens with positions after the blocks before."""
    encoder = translator.model.encoder
    ids = translator.encode(text)
    used = ids[:max_tokens]
    with record(states=True) as trace:
        encoder(torch.tensor([used], device=translator.device))
    X = trace.states[f"encoder.{block - 1}.residual" if block else "encoder.embedding"]
    return Tokens(translator.readable_tokens(used), X[0].float().cpu(), 1, len(used), len(ids))


def trained_layer(translator: Translator, block: int, num_heads: int) -> MultiHeadAttention:
    """The self-attention of an encoder block, its matrices cut into any number of heads that divides their width."""
    trained = translator.model.encoder.blocks[block].attention
    layer = MultiHeadAttention(trained.W_q.out_features, num_heads, bias=trained.W_q.bias is not None)
    layer.load_state_dict({name: tensor.float().cpu() for name, tensor in trained.state_dict().items()})
    name_site(layer, f"encoder.{block}.self")  # so that its maps carry its own number
    return layer.eval().requires_grad_(False)


ERRORS = ("wrong-root", "dealt-out", "undivided")


class Variant(NamedTuple):
    """Attention weights and output of the layer, correct or with an error."""

    weights: Float[Tensor, "batch heads n n"]
    output: Float[Tensor, "batch n d"]


@torch.no_grad()
def variant(layer: MultiHeadAttention, steps: MultiHeadSteps, error: str = "") -> Variant:
    """Weights and output of `layer(X, X, X)` with one error; "" is the correct layer.

    "wrong-root" divides scores by sqrt(d) of the layer instead of sqrt(d / h); "dealt-out" gives each head every h-th
    column instead of a slice; "undivided" leaves out the division of the softmax.
    """
    h, values = layer.num_heads, steps.split_values
    if not error:
        return Variant(steps.weights, steps.output)
    if error == "wrong-root":
        weights = (steps.scores * h**-0.5).softmax(dim=-1)
    elif error == "dealt-out":
        Q, K, values = (rearrange(t, "b n (w h) -> b h n w", h=h) for t in (steps.queries, steps.keys, steps.values))
        weights = (Q @ K.mT * Q.shape[-1] ** -0.5).softmax(dim=-1)
    else:
        weights = steps.exponentials
    return Variant(weights, layer.W_o(rearrange(weights @ values, "b h n w -> b n (h w)")))


@torch.no_grad()
def residuals(layer: MultiHeadAttention, steps: MultiHeadSteps, error: str = "") -> tuple[float, float]:
    """max |ours - torch's| of outputs, and of the weights of all heads."""
    ours, X = variant(layer, steps, error), steps.input
    output, weights = torch_multi_head(layer)(X, X, X, average_attn_weights=False)
    return float((ours.output - output).abs().max()), float((ours.weights - weights).abs().max())


NUM_HIDDENS, NUM_HEADS = 100, 5
NUM_QUERIES, NUM_KEYS = 4, 6
LENGTHS = (3, 2)


class CrossAttention(NamedTuple):
    """Inputs and outputs of the layer on queries and other keys."""

    weights: Float[Tensor, "2 5 4 6"]
    output: Float[Tensor, "2 4 100"]
    parameters: int  # numbers in its four matrices


def book_toy(
    query_size: int = NUM_HIDDENS,
    key_size: int = NUM_HIDDENS,
    value_size: int = NUM_HIDDENS,
    ones: bool = True,
    seed: int = 0,
) -> CrossAttention:
    """W_o [head_1; ...; head_5] for 4 queries and 6 keys in two rows, of which 3 and 2 may be seen.

    Each input has its own width: W_q, W_k and W_v bring all three to 100 (Dive into Deep Learning, section 11.5.2,
    whose queries, keys and values are ones).
    """
    generator = torch.Generator().manual_seed(seed)
    sizes = (query_size, key_size, value_size)
    layer = MultiHeadAttention(
        NUM_HIDDENS, NUM_HEADS, query_size=query_size, key_size=key_size, value_size=value_size
    ).eval()
    with torch.no_grad(), record() as trace:
        for linear in (layer.W_q, layer.W_k, layer.W_v, layer.W_o):
            linear.weight.normal_(std=linear.in_features**-0.5, generator=generator)
        counts = (NUM_QUERIES, NUM_KEYS, NUM_KEYS)
        shapes = [(2, n, size) for n, size in zip(counts, sizes, strict=True)]
        inputs = [torch.ones(shape) if ones else torch.randn(shape, generator=generator) for shape in shapes]
        output = layer(*inputs, torch.tensor(LENGTHS))
    parameters = sum(parameter.numel() for parameter in layer.parameters())
    return CrossAttention(next(iter(trace)).weights(), output, parameters)


def is_separator(token: str) -> bool:
    """Whether a token is a special token, such as <eos>, or has no letter and no digit, such as a full stop."""
    return (token.startswith("<") and token.endswith(">")) or not any(character.isalnum() for character in token)


def mean_ranges(weights: Float[Tensor, "heads n n"], positions: Sequence[int] | None = None) -> Float[Tensor, " heads"]:
    """mean_i sum_j a_ij |i - j|: the mean attention distance of each head, in tokens.

    Args:
        positions: those counted, as queries and as keys; each row is divided by its new sum.
    """
    places = torch.arange(weights.shape[-1], dtype=weights.dtype)
    if positions is not None:
        places = places[list(positions)]
        weights = weights[:, list(positions)][..., list(positions)]
        weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    return (weights * (places[:, None] - places).abs()).sum(dim=-1).mean(dim=-1)


def uniform_range(positions: Sequence[int]) -> float:
    """The mean attention distance of a head with uniform weights on these positions; n of them in a row:
    (n^2 - 1) / (3 n)."""
    places = torch.tensor(positions, dtype=torch.float64)
    return float((places[:, None] - places).abs().mean())


class MultiHeadCost(NamedTuple):
    """Numbers in one layer, for one sequence, without biases."""

    parameters: int  # learned, in W_q, W_k, W_v and W_o
    projections: int  # multiplications in the four projections
    products: int  # multiplications in Q K^T and in weights times V
    weights: int  # attention weights, each with an exponential of its own

    @property
    def multiplications(self) -> int:
        """Of the projections and the products together."""
        return self.projections + self.products


def multi_head_cost(num_tokens: int, num_hiddens: int, num_heads: int) -> MultiHeadCost:
    """Cost of self-attention over n tokens of width d with h heads, each w wide (Vaswani 2017, section 3.2.2).

    parameters 4 d h w, projections 4 n d h w, products 2 n^2 h w, weights h n^2. With w = d / h,
    as in the paper, h leaves all but the last: 4 d^2, 4 n d^2 and 2 n^2 d.
    """
    n, d = num_tokens, num_hiddens
    return MultiHeadCost(4 * d * d, 4 * n * d * d, 2 * n * n * d, num_heads * n * n)


def divisors(number: int) -> list[int]:
    """Every whole number that divides a positive one, in order: the numbers of heads a width can be cut into."""
    return [candidate for candidate in range(1, number + 1) if number % candidate == 0]
