"""The ViT against the book's own classes and against a forward pass written out; positions and sizes by hand."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from viz_core.models.patch_grid import interpolate_positions, resize_grid
from viz_core.models.vit import ViT
from viz_core.trace import record

SIZES = {
    "img_size": 12,
    "patch_size": 4,
    "num_hiddens": 16,
    "mlp_num_hiddens": 24,
    "num_heads": 2,
    "num_blks": 2,
    "emb_dropout": 0.1,
    "blk_dropout": 0.1,
}


class BookAttention(nn.Module):
    """The book's multi-head attention: heads folded into the batch, batched matrix products, a softmax."""

    def __init__(self, num_hiddens: int, num_heads: int, dropout: float, bias: bool = False) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout = nn.Dropout(dropout)
        self.W_q = nn.LazyLinear(num_hiddens, bias=bias)
        self.W_k = nn.LazyLinear(num_hiddens, bias=bias)
        self.W_v = nn.LazyLinear(num_hiddens, bias=bias)
        self.W_o = nn.LazyLinear(num_hiddens, bias=bias)

    def split(self, X: torch.Tensor) -> torch.Tensor:
        X = X.reshape(X.shape[0], X.shape[1], self.num_heads, -1).permute(0, 2, 1, 3)
        return X.reshape(-1, X.shape[2], X.shape[3])

    def forward(self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        q, k, v = self.split(self.W_q(queries)), self.split(self.W_k(keys)), self.split(self.W_v(values))
        weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5, dim=-1)
        out = torch.bmm(self.dropout(weights), v)
        out = out.reshape(-1, self.num_heads, out.shape[1], out.shape[2]).permute(0, 2, 1, 3)
        return self.W_o(out.reshape(out.shape[0], out.shape[1], -1))


class BookPatchEmbedding(nn.Module):
    def __init__(self, img_size: int, patch_size: int, num_hiddens: int) -> None:
        super().__init__()
        self.num_patches = (img_size // patch_size) ** 2
        self.conv = nn.LazyConv2d(num_hiddens, kernel_size=patch_size, stride=patch_size)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.conv(X).flatten(2).transpose(1, 2)


class BookMLP(nn.Module):
    def __init__(self, mlp_num_hiddens: int, mlp_num_outputs: int, dropout: float) -> None:
        super().__init__()
        self.dense1 = nn.LazyLinear(mlp_num_hiddens)
        self.dropout1 = nn.Dropout(dropout)
        self.dense2 = nn.LazyLinear(mlp_num_outputs)
        self.dropout2 = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout2(self.dense2(self.dropout1(F.gelu(self.dense1(x)))))


class BookBlock(nn.Module):
    def __init__(self, num_hiddens: int, mlp_num_hiddens: int, num_heads: int, dropout: float, bias: bool) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(num_hiddens)
        self.attention = BookAttention(num_hiddens, num_heads, dropout, bias)
        self.ln2 = nn.LayerNorm(num_hiddens)
        self.mlp = BookMLP(mlp_num_hiddens, num_hiddens, dropout)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        X = X + self.attention(*([self.ln1(X)] * 3))
        return X + self.mlp(self.ln2(X))


class BookViT(nn.Module):
    def __init__(
        self,
        img_size: int,
        patch_size: int,
        num_hiddens: int,
        mlp_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        emb_dropout: float,
        blk_dropout: float,
        use_bias: bool = False,
        num_classes: int = 10,
    ) -> None:
        super().__init__()
        self.patch_embedding = BookPatchEmbedding(img_size, patch_size, num_hiddens)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, num_hiddens))
        self.pos_embedding = nn.Parameter(torch.randn(1, self.patch_embedding.num_patches + 1, num_hiddens))
        self.dropout = nn.Dropout(emb_dropout)
        self.blks = nn.Sequential()
        for i in range(num_blks):
            self.blks.add_module(f"{i}", BookBlock(num_hiddens, mlp_num_hiddens, num_heads, blk_dropout, use_bias))
        self.head = nn.Sequential(nn.LayerNorm(num_hiddens), nn.Linear(num_hiddens, num_classes))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        X = self.patch_embedding(X)
        X = torch.cat((self.cls_token.expand(X.shape[0], -1, -1), X), 1)
        X = self.dropout(X + self.pos_embedding)
        for blk in self.blks:
            X = blk(X)
        return self.head(X[:, 0])


def book_and_ours(use_bias: bool, channels: int) -> tuple[BookViT, ViT]:
    book = BookViT(**SIZES, use_bias=use_bias).eval()  # type: ignore[arg-type]
    book(torch.zeros(1, channels, 12, 12))  # lazy layers learn their sizes
    with torch.no_grad():
        for parameter in book.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # no zeros and ones that would hide a mix-up
    ours = ViT(**SIZES, use_bias=use_bias, num_channels=channels).eval()  # type: ignore[arg-type]
    return book, ours


@pytest.mark.parametrize(("use_bias", "channels"), [(False, 3), (True, 1)])
def test_a_state_dict_of_the_books_classes_loads_and_answers_alike(use_bias: bool, channels: int) -> None:
    book, ours = book_and_ours(use_bias, channels)
    ours.load_state_dict(book.state_dict(), strict=True)
    assert list(ours.state_dict()) == list(book.state_dict())
    X = torch.randn(3, channels, 12, 12)
    torch.testing.assert_close(ours(X), book(X), atol=2e-6, rtol=1e-5)


def test_sites_and_rows_of_the_trace() -> None:
    model = ViT(**SIZES, num_channels=1).eval()  # type: ignore[arg-type]
    with torch.no_grad(), record() as trace:
        model(torch.randn(2, 1, 12, 12))
    assert trace.sites == ("encoder.0.self", "encoder.1.self")
    call = trace["encoder.1.self"]
    assert (call.kind, call.layer, call.num_heads, call.num_queries) == ("self", 1, 2, 10)
    torch.testing.assert_close(call.weights().sum(dim=-1), torch.ones(2, 2, 10))


# Positions


def test_the_class_token_comes_first_and_the_patches_row_by_row() -> None:
    model = ViT(**SIZES).eval()  # type: ignore[arg-type]
    X = torch.randn(1, 3, 12, 12)
    H = model.embed(X)
    torch.testing.assert_close(H[:, :1], model.cls_token + model.pos_embedding[:, :1])
    torch.testing.assert_close(H[:, 1:], model.patch_embedding(X) + model.pos_embedding[:, 1:])
    assert torch.equal(model.embed(X, positions=False)[:, :1], model.cls_token)


def test_interpolated_positions_keep_the_class_token_and_every_point_both_grids_share() -> None:
    """On a grid three times as fine, the middle of each three by three lies where a learned position does."""
    table = torch.randn(1, 12, 5)
    positions = torch.cat((torch.full((1, 1, 5), 9.0), table), dim=1)
    found = interpolate_positions(positions, (4, 3), (12, 9))
    assert found.shape == (1, 109, 5)
    assert torch.equal(found[:, 0], positions[:, 0])
    middles = found[0, 1:].reshape(12, 9, 5)[1::3, 1::3]
    torch.testing.assert_close(middles, table.reshape(4, 3, 5), atol=1e-6, rtol=0)
    level = interpolate_positions(torch.full((1, 13, 5), 2.5), (4, 3), (7, 2))
    torch.testing.assert_close(level, torch.full((1, 15, 5), 2.5))
    assert interpolate_positions(positions, (4, 3), (4, 3)) is positions


def test_a_grid_of_positions_is_brought_to_another_grid() -> None:
    table = torch.randn(49, 8)
    assert resize_grid(table, (7, 7), (7, 7)) is table
    across = torch.arange(7.0).repeat(7)[:, None]  # each cell's column
    wider = resize_grid(across, (7, 7), (7, 14)).reshape(7, 14)
    torch.testing.assert_close(wider, wider[:1].expand(7, 14), atol=1e-4, rtol=0)
    assert (wider[0].diff() > 0).all()
    with pytest.raises(ValueError, match="expected 7 x 7 positions, got 48"):
        resize_grid(table[:48], (7, 7), (6, 8))


def test_another_size_is_answered_and_its_gradient_reaches_every_position() -> None:
    model = ViT(**SIZES)  # type: ignore[arg-type]
    for size in ((8, 8), (16, 12), (4, 20)):
        model.zero_grad()
        out = model(torch.randn(2, 3, *size))
        assert out.shape == (2, 10)
        out.square().sum().backward()
        assert model.pos_embedding.grad is not None
        assert (model.pos_embedding.grad.abs().sum(dim=-1) > 0).sum() > 1
    with pytest.raises(ValueError, match="expected 1 \\+ 3 x 3 positions, got 9"):
        interpolate_positions(torch.zeros(1, 9, 2), (3, 3), (2, 2))


# What is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"img_size": 13}, "patches of 4 x 4 pixels divide, got 13 x 13"),
        ({"img_size": (12, 10)}, "patches of 4 x 4 pixels divide, got 12 x 10"),
        ({"img_size": 0}, "img_size: expected one number or \\(height, width\\), each at least 1, got 0"),
        ({"patch_size": (4, 4, 4)}, "patch_size: expected one number"),
        ({"num_heads": 3}, "num_heads: expected a divisor of num_hiddens=16, got 3"),
        ({"num_channels": 0}, "num_channels: expected at least 1, got 0"),
    ],
)
@pytest.mark.usefixtures("shapes_unchecked")
def test_sizes_that_do_not_fit(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ViT(**{**SIZES, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 1, 12, 12), "expected pictures of shape \\(batch, 3, height, width\\), got \\(1, 1, 12, 12\\)"),
        ((3, 12, 12), "expected pictures of shape"),
        ((1, 3, 12, 14), "divide, got 12 x 14"),
        ((1, 3, 0, 12), "divide, got 0 x 12"),
    ],
)
@pytest.mark.usefixtures("shapes_unchecked")
def test_pictures_that_do_not_fit(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ViT(**SIZES)(torch.zeros(shape))  # type: ignore[arg-type]
