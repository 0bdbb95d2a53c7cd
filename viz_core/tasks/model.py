"""A small Transformer for a task, made of the library's own layers, under any position scheme."""

from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from viz_core.attention import MultiHeadAttention
from viz_core.models import AddNorm, PositionWiseFFN
from viz_core.positional import BY_TASK_NAME
from viz_core.positional.entry import SchemeSizes
from viz_core.trace import name_sites

MAX_LENGTH = 512
"""Tokens of a row; learned tables have as many rows."""
POSITIONS = tuple(BY_TASK_NAME)
"""Names of the position schemes that a model can have."""
_MAX_DISTANCE = 16  # tokens: offsets beyond share a vector (Shaw 2018, section 3.2)


@dataclass(frozen=True)
class Shape:
    """Size and kind of a model.

    Attributes:
        num_layers: 1 to 4.
        num_heads: 1 to 8; they divide the width.
        num_hiddens: 32 to 256.
        positions: one of POSITIONS.
        norm_first: whether norms come before the layers (Xiong 2020).
        feed_forward: whether a feed-forward net, four times as wide, follows each attention.
        causal: whether a token sees only those before it, as a decoder does.
    """

    num_layers: int = 2
    num_heads: int = 4
    num_hiddens: int = 64
    positions: str = "rotary"
    norm_first: bool = True
    feed_forward: bool = True
    causal: bool = True

    def __post_init__(self) -> None:
        ranges = {"num_layers": (1, 4), "num_heads": (1, 8), "num_hiddens": (32, 256)}
        for name, (low, high) in ranges.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name}: expected {low} to {high}, got {getattr(self, name)}")
        if self.num_hiddens % self.num_heads:
            raise ValueError(f"num_heads: expected a divisor of {self.num_hiddens}, got {self.num_heads}")
        if self.positions not in POSITIONS:
            raise ValueError(f"positions: expected one of {', '.join(POSITIONS)}, got {self.positions!r}")

    @property
    def scheme_sizes(self) -> SchemeSizes:
        """Sizes that its position scheme is made for."""
        return SchemeSizes(
            MAX_LENGTH,
            self.num_hiddens,
            self.num_heads,
            1,
            MAX_LENGTH,
            max_distance=_MAX_DISTANCE,
            per_head=True,
            bidirectional=not self.causal,
        )


class TaskLayer(nn.Module):
    """Self-attention and an optional feed-forward net, each with its residual connection and norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.num_hiddens
        scheme = BY_TASK_NAME[shape.positions].make(shape.scheme_sizes)
        self.attention = MultiHeadAttention(width, shape.num_heads, 0.0, positions=scheme)
        self.addnorm1 = AddNorm(width, 0.0, shape.norm_first)
        self.ffn = PositionWiseFFN(4 * width, width) if shape.feed_forward else None
        self.addnorm2 = AddNorm(width, 0.0, shape.norm_first) if shape.feed_forward else None

    def forward(self, X: Float[Tensor, "batch n d"], causal: bool) -> Float[Tensor, "batch n d"]:
        """Y = X + attention(LN(X)), then Y + ffn(LN(Y)); post-norm takes the norms of the sums instead."""
        Z = self.addnorm1.branch(X)
        Y = self.addnorm1(X, self.attention(Z, Z, Z, causal=causal))
        if self.ffn is None or self.addnorm2 is None:
            return Y
        return self.addnorm2(Y, self.ffn(self.addnorm2.branch(Y)))


class TaskTransformer(nn.Module):
    """Embeddings, layers, and scores of every token; its sites are "decoder.i.self" or "encoder.i.self".

    Args:
        vocab_size: number of tokens of the task; one more id masks the tokens to predict.
    """

    def __init__(self, vocab_size: int, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.unknown = vocab_size
        self.embedding = nn.Embedding(vocab_size + 1, shape.num_hiddens)
        make_input = BY_TASK_NAME[shape.positions].make_input
        self.positions = nn.Identity() if make_input is None else make_input(MAX_LENGTH, shape.num_hiddens)
        self.blks = nn.ModuleList(TaskLayer(shape) for _ in range(shape.num_layers))
        self.norm = nn.LayerNorm(shape.num_hiddens) if shape.norm_first else nn.Identity()
        self.head = nn.Linear(shape.num_hiddens, vocab_size)
        name_sites(self, "decoder" if shape.causal else "encoder")

    @property
    def layers(self) -> tuple[TaskLayer, ...]:
        """The layers, first to last."""
        return cast(tuple[TaskLayer, ...], tuple(self.blks))

    def forward(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n vocab"]:
        """Scores of the next token at each position if causal, of the token at this position if not."""
        X = self.positions(self.embedding(tokens))
        for layer in self.layers:
            X = layer(X, self.shape.causal)
        return self.head(self.norm(X))

    def reads(self, tokens: Int[Tensor, "batch n"], decided: Bool[Tensor, "batch n"]) -> Int[Tensor, "batch m"]:
        """The input made of a row: all but the last token if causal, else the row with the decided tokens masked."""
        return tokens[:, :-1] if self.shape.causal else torch.where(decided, self.unknown, tokens)

    def predictions(
        self, tokens: Int[Tensor, "batch n"], decided: Bool[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "decided vocab"], Int[Tensor, " decided"]]:
        """Scores for each token that the rule decides, and these tokens.

        A causal model predicts the token after each; another reads the row with the decided tokens masked and predicts
        all at once.
        """
        scores = self(self.reads(tokens, decided))
        if self.shape.causal:
            return scores[decided[:, 1:]], tokens[:, 1:][decided[:, 1:]]
        return scores[decided], tokens[decided]
