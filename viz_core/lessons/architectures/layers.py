"""The layers that are compared, real and runnable: vectors of width d in, as many of the same width out."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from viz_core.attention import MultiHeadAttention
from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes
from viz_core.trace import attend, record


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
