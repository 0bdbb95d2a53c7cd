"""Heads named in a sentence: a click opens them, as one on their thumbnail does."""

from __future__ import annotations

from ui.text.words import load_words


def head_link(group: str, layer: int, head: int, name: str = "") -> str:
    """A head's name in Markdown. The attention view of the page hears of a click on it (named.js).

    Args:
        group: the kind of maps that has it.
        layer: and head, from 0.
        name: "layer 2, head 3" unless given.
    """
    name = name or load_words("common")("head-named", layer=layer + 1, head=head + 1)
    return f"[{name}](#head={group}.{layer}.{head})"
