"""Table 1 of "Attention Is All You Need": cost, sequential steps and paths of layers, which are real and runnable."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from viz_core.attention import MultiHeadAttention
from viz_core.trace import attend, record

# In the order of the table; the two convolutions differ in nothing but their path.
ARCHITECTURES = ("attention", "recurrent", "convolution", "dilated", "restricted")


class LayerSizes(NamedTuple):
    """What the cost of a layer depends on."""

    n: int  # tokens
    d: int  # width of a token's vector
    k: int  # tokens under one kernel of a convolution
    r: int  # tokens that restricted self-attention looks at


class LayerCost(NamedTuple):
    """A row of the table, as numbers."""

    order: int  # multiplications as the table has them, where constant factors do not count
    counted: int  # multiplications of the whole layer as torch builds it, projections and all
    sequential: int  # steps that cannot be done at once
    # what the table has for the longest path, where constant factors do not count; infinite where a stack never joins
    # all tokens
    path: float


def layer_cost(name: str, sizes: LayerSizes) -> LayerCost:
    """One row of Table 1 (Vaswani 2017, section 4) with these numbers.

    | layer | order | counted | sequential | path |
    | attention | n^2 d | 2 n^2 d + 4 n d^2 | 1 | 1 |
    | recurrent | n d^2 | 2 n d^2 | n | n |
    | convolution | k n d^2 | k n d^2 | 1 | n / k |
    | dilated | k n d^2 | k n d^2 | 1 | log_k n |
    | restricted | r n d | 2 r n d + 4 n d^2 | 1 | n / r |

    A window wider than the text is cut to it. `counted` leaves out biases, the softmax and the window's cut at
    the ends of the text: convolution multiplies padding too, and restricted self-attention is taken as n windows of r.
    """
    n, d, k, r = sizes.n, sizes.d, sizes.k, min(sizes.r, sizes.n)
    projections, convolution = 4 * n * d**2, k * n * d**2
    rows = {
        "attention": (n**2 * d, 2 * n**2 * d + projections, 1, 1.0),
        "recurrent": (n * d**2, 2 * n * d**2, n, float(n)),
        "convolution": (convolution, convolution, 1, _path(n, k, n / k)),
        "dilated": (convolution, convolution, 1, _path(n, k, math.log(n, max(2, k)))),
        "restricted": (r * n * d, 2 * r * n * d + projections, 1, _path(n, sizes.r, n / sizes.r)),
    }
    return LayerCost(*rows[name])


def crossover(name: str, sizes: LayerSizes) -> int:
    """The length n at which self-attention's n^2 d meets the order of another layer.

    d for recurrence, k d for convolution, r for restricted self-attention; below it, self-attention is cheaper.
    """
    return {"recurrent": sizes.d, "restricted": sizes.r}.get(name, sizes.k * sizes.d)


def _path(tokens: int, window: int, layers: float) -> float:
    """Return the longest path: no number of layers joins tokens of a window of one."""
    return math.inf if window == 1 and tokens > 1 else max(1.0, layers)


def path_length(name: str, first: int, last: int, sizes: LayerSizes) -> float:
    """Steps from token `first` until its signal reaches the unit at token `last`; infinite where it never does.

    With the distance D = last - first:
    self-attention 1; recurrence D steps along the states; contiguous convolution ceil(D / (k - 1)), as each layer
    adds k - 1 tokens; dilated convolution ceil(log_k(D + 1)), as L layers with steps 1, k, k^2, ... see k^L tokens;
    restricted self-attention ceil(D / (r - 1)). A token reaches itself at once: 0. No layer leads back, where D < 0.

    Every unit reads itself and earlier tokens, as in a decoder: self-attention has a causal mask. A network that reads
    as many tokens on both sides needs as many layers until some unit has seen both tokens.
    """
    distance = last - first
    if distance == 0:
        return 0
    if distance < 0:
        return math.inf
    if name == "attention":
        return 1
    if name == "recurrent":
        return distance
    window = sizes.r if name == "restricted" else sizes.k
    if window == 1:
        return math.inf
    if name == "dilated":
        return _layers_of_powers(distance + 1, window)
    return -(-distance // (window - 1))


def longest_path(name: str, sizes: LayerSizes) -> float:
    """The path between the first and the last token: no pair has a longer one."""
    return path_length(name, 0, sizes.n - 1, sizes)


def path_matrix(name: str, sizes: LayerSizes) -> Float[Tensor, "n n"]:
    """Path length from each token (row) to each (column); infinite where none leads."""
    tokens = range(sizes.n)
    return torch.tensor([[float(path_length(name, first, last, sizes)) for last in tokens] for first in tokens])


def _layers_of_powers(tokens: int, k: int) -> int:
    """The least L with k^L >= tokens, in whole numbers: a logarithm would round."""
    layers, reach = 0, 1
    while reach < tokens:
        layers, reach = layers + 1, reach * k
    return layers


class SelfAttention(nn.Module):
    """Self-attention of every token over all tokens, or, causal, over itself and earlier ones: attention(X, X, X)."""

    def __init__(self, num_hiddens: int, num_heads: int = 1, causal: bool = False) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(num_hiddens, num_heads)
        self.causal = causal

    def forward(self, X: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        """softmax(Q K^T / sqrt(d)) V of the tokens with themselves (Vaswani 2017, equation 1)."""
        return self.attention(X, X, X, causal=self.causal)


class Recurrent(nn.Module):
    """h_t = tanh(W x_t + U h_(t-1) + b): each state waits for the one before (Elman 1990)."""

    def __init__(self, num_hiddens: int) -> None:
        super().__init__()
        self.rnn = nn.RNN(num_hiddens, num_hiddens, batch_first=True)

    def forward(self, X: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        """h_1 .. h_n, from h_0 = 0."""
        states, _ = self.rnn(X)
        return states


class Convolution(nn.Module):
    """y_t = sum_(j < k) W_j x_(t - j s): a token and the k - 1 before it, in steps of s (dilation).

    Before the first token there are zeros.
    """

    def __init__(self, num_hiddens: int, kernel_size: int, dilation: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv1d(num_hiddens, num_hiddens, kernel_size, dilation=dilation)
        self.padding = (kernel_size - 1) * dilation

    def forward(self, X: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        """y_1 .. y_n."""
        return self.conv(F.pad(X.mT, (self.padding, 0))).mT


class RestrictedSelfAttention(nn.Module):
    """Self-attention of each token over itself and the r - 1 before it (Vaswani 2017, section 4, "restricted").

    Computed in blocks of r queries, each against its own block of keys and the one before, so that cost and memory
    grow with r n and not with n^2.
    """

    def __init__(self, num_hiddens: int, window: int, num_heads: int = 1) -> None:
        super().__init__()
        self.window = window
        self.attention = MultiHeadAttention(num_hiddens, num_heads)

    def forward(self, X: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        """The outputs, each over the r tokens up to and including its own."""
        batch, n, _ = X.shape
        r = min(self.window, n)
        num_blocks = -(-n // r)
        layer = self.attention
        padded = F.pad(X, (0, 0, 0, num_blocks * r - n))
        q, k, v = (
            rearrange(linear(padded), "b (m r) (h w) -> b m h r w", r=r, h=layer.num_heads)
            for linear in (layer.W_q, layer.W_k, layer.W_v)
        )
        k, v = (torch.cat([F.pad(t, (0, 0, 0, 0, 0, 0, 1, 0))[:, :-1], t], dim=3) for t in (k, v))
        mask = repeat(window_mask(num_blocks, r, X.device), "m r k -> (b m) 1 r k", b=batch)
        q, k, v = (rearrange(t, "b m h r w -> (b m) h r w") for t in (q, k, v))
        heads = rearrange(attend(q, k, v, mask=mask), "(b m) h r w -> b (m r) (h w)", b=batch)
        return layer.W_o(heads[:, :n])


def window_mask(num_blocks: int, r: int, device: torch.device | None = None) -> Bool[Tensor, "blocks r two_r"]:
    """Which of its two blocks of keys a query may see: the last r keys up to itself, none before the first token."""
    query = torch.arange(r, device=device)[:, None] + r  # its place among the 2 r keys
    key = torch.arange(2 * r, device=device)
    in_window = (key <= query) & (key > query - r)
    real = torch.arange(num_blocks, device=device)[:, None, None] + key // r > 0  # block -1 is not there
    return in_window & real


def build_layer(name: str, sizes: LayerSizes, depth: int = 0, num_heads: int = 1, causal: bool = False) -> nn.Module:
    """A layer as the table names it.

    Args:
        depth: index of the layer in a stack, which sets the dilation k^depth.
        causal: whether self-attention sees no later token; the other layers never do.
    """
    if name == "attention":
        return SelfAttention(sizes.d, num_heads, causal)
    if name == "recurrent":
        return Recurrent(sizes.d)
    if name == "convolution":
        return Convolution(sizes.d, sizes.k)
    if name == "dilated":
        return Convolution(sizes.d, sizes.k, sizes.k**depth)
    return RestrictedSelfAttention(sizes.d, sizes.r, num_heads)


@torch.no_grad()
def self_attention_shape() -> tuple[int, ...]:
    """The shape of 5 heads, 100 wide, over 2 sentences of 4 tokens, of which the second has 2."""
    layer, X = MultiHeadAttention(100, 5), torch.ones(2, 4, 100)
    return tuple(layer(X, X, X, torch.tensor([3, 2])).shape)


def signal_strength(name: str, first: int, last: int, sizes: LayerSizes, num_layers: int) -> float:
    """max |d output(last) / d input(first)| of a stack of random layers: exactly 0 where no path leads."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        stack = nn.Sequential(*(build_layer(name, sizes, depth, causal=True) for depth in range(num_layers))).double()
        X = torch.randn(1, sizes.n, sizes.d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(stack(X)[0, last].sum(), X)
    return float(gradient[0, first].abs().max())


@torch.no_grad()
def shuffled_residual(layer: nn.Module, X: Float[Tensor, "n d"], order: Int[Tensor, " n"]) -> float:
    """max |f(P X) - P f(X)| for the permutation P that puts token order[i] at place i; near 0 for a layer on sets."""
    return float((layer(X[order][None])[0] - layer(X[None])[0, order]).abs().max())


@torch.no_grad()
def pooled_residual(layer: nn.Module, X: Float[Tensor, "n d"], order: Int[Tensor, " n"]) -> float:
    """max |mean f(P X) - mean f(X)|: what a classifier on the mean of the outputs would notice of the shuffle."""
    return float((layer(X[order][None])[0].mean(dim=0) - layer(X[None])[0].mean(dim=0)).abs().max())


def fresh_layers(num_hiddens: int) -> dict[str, nn.Module]:
    """One untrained layer of each architecture, always with the same parameters."""
    sizes = LayerSizes(1, num_hiddens, 3, 4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return {name: build_layer(name, sizes, depth=1).eval().requires_grad_(False) for name in ARCHITECTURES}


@torch.no_grad()
def first_head_weights(layer: nn.Module, X: Float[Tensor, "n d"]) -> Float[Tensor, "n n"]:
    """The weights of the first head of a layer of self-attention."""
    with record() as trace:
        layer(X[None])
    return next(iter(trace)).weights(head=0)[0]


def timed_call(name: str, n: int, sizes: LayerSizes, num_heads: int, device: torch.device) -> Callable[[], object]:
    """A call of one layer on n random tokens, to be timed."""
    layer = build_layer(name, sizes, num_heads=num_heads).eval().to(device)
    X = torch.randn(1, n, sizes.d, device=device)
    return lambda: layer(X)
