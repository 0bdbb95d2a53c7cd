"""The runs of Dive into Deep Learning's attention chapter, repeated as printed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recipes import book_pictures, book_translators

RUNS: dict[str, Callable[..., None]] = {
    **{name: partial(book_translators.train, name) for name in book_translators.BOOK_TRANSLATORS},
    "book-vit": book_pictures.train,
}
