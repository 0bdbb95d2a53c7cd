"""The shapes the book checks."""

from __future__ import annotations

from viz_core.lessons.bahdanau.decoder_steps import decoder_shapes


def test_the_books_shapes() -> None:
    assert decoder_shapes() == {"output": (4, 7, 10), "keys": (4, 7, 16), "hidden": (4, 16)}
