"""Which head of the cross-attention aligns the words of the two sentences, and which word it aligns."""

from __future__ import annotations

from ui.chapter.chapter import Chapter
from ui.text.head_names import head_link
from viz_core.maps.alignments import best_aligner
from viz_core.pretrained import Translator


def which_head_aligns(chapter: Chapter, model: Translator) -> None:
    """The heads with the fewest errors for the word written and for the word read, as measured for the model."""
    errors = model.alignment_errors
    if not errors:
        return
    measured = model.card.training["alignments"]
    values = {"pairs": measured["pairs"], "diagonal": f"{measured['diagonal']:.1%}"}
    written, *writer = best_aligner(errors, "written")
    read, *reader = best_aligner(errors, "read")
    for side, rate, (layer, head) in (("writer", written, writer), ("reader", read, reader)):
        values |= {side: head_link("cross", layer, head), f"{side}_rate": f"{rate:.1%}"}
    chapter.text("aligns", **values)
