"""Links in sentences that open a head in the attention view."""

from __future__ import annotations

from ui.text.words import load_words


def head_link(group: str, layer: int, head: int, name: str = "") -> str:
    """Return a head's name as a Markdown link; a click opens it in the page's attention view (head_links.js).

    Args:
        group: the kind of maps that contains it.
        layer: and head, from 0.
        name: "layer 2, head 3" unless given.
    """
    name = name or load_words("common")("head-named", layer=layer + 1, head=head + 1)
    return f"[{name}](#head={group}.{layer}.{head})"
