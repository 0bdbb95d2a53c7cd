"""What the book prints of self-attention and of a convolution's reach, with ours beside it."""

from __future__ import annotations

from ui.chapter.chapter import Chapter
from viz_core.lessons.architectures import LayerSizes, path_length
from viz_core.lessons.architectures.book_examples import self_attention_shape


def book_cards(chapter: Chapter) -> None:
    """Shapes of a layer that asks itself; and how many layers of kernel 3 join the first of five tokens to the last."""
    chapter.source_card("own-shape", lambda: [float(size) for size in self_attention_shape()])
    chapter.source_card("five-tokens", lambda: path_length("convolution", 0, 4, LayerSizes(5, 8, 3, 3)))
