"""The book's numbers for self-attention and for the reach of a convolution, beside ours."""

from __future__ import annotations

from ui.chapter.chapter import Chapter
from viz_core.lessons.architectures import LayerSizes, path_length
from viz_core.lessons.architectures.book_examples import self_attention_shape


def book_cards(chapter: Chapter) -> None:
    """Show the shape of self-attention's output, and the depth at which kernels of 3 connect five tokens."""
    chapter.source_card("own-shape", lambda: [float(size) for size in self_attention_shape()])
    chapter.source_card("five-tokens", lambda: path_length("convolution", 0, 4, LayerSizes(5, 8, 3, 3)))
