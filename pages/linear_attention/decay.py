"""Constant decay: how fast each head of a retention layer forgets."""

from __future__ import annotations

from pages.linear_attention.figures import decay_figure
from pages.linear_attention.sources import sources
from ui.chapter.chapter import Chapter
from ui.text.numbers import localised
from viz_core.attention.linear import retention_decay
from viz_core.lessons.linear_attention.forms import decay_by_age, map_error

_HEADS, _AGES = 6, 256


def decay(chapter: Chapter) -> None:
    """Draw what is left of a token by its age, for each head, and the source's formula."""
    decays = retention_decay(_HEADS).tolist()
    label = chapter.words.group("figure")["head"]
    curves = {
        label.format(head=head + 1, decay=localised(f"{each:.4f}", chapter.words.language)): curve
        for head, (each, curve) in enumerate(zip(decays, decay_by_age(_HEADS, _AGES).numpy(), strict=True))
    }
    chapter.text("decay")
    with chapter.claim_row("claims-decay"):
        chapter.claim("age", map_error(_HEADS), 1e-12)
    spans = [f"{1 / (1 - each):,.0f}" for each in decays]
    chapter.figure("decay", decay_figure(curves, chapter.words.group("figure")), heads=_HEADS, spans=spans)
    sources(chapter)
