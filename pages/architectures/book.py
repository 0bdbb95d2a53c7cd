"""What the book prints of self-attention and of a convolution's reach, with ours beside it."""

from __future__ import annotations

import torch

from ui.chapter.chapter import Chapter
from viz_core.attention import MultiHeadAttention
from viz_core.lessons.architectures import LayerSizes, path_length


def book_cards(chapter: Chapter) -> None:
    """Shapes of a layer that asks itself; and how many layers of kernel 3 join the first of five tokens to the last."""
    chapter.source_card("own-shape", _own_shape)
    chapter.source_card("five-tokens", lambda: path_length("convolution", 0, 4, LayerSizes(5, 8, 3, 3)))


@torch.no_grad()
def _own_shape() -> list[float]:
    """Queries, keys and values are the same tokens, of which the second sentence has two."""
    layer, X = MultiHeadAttention(100, 5), torch.ones(2, 4, 100)
    return [float(size) for size in layer(X, X, X, torch.tensor([3, 2])).shape]
