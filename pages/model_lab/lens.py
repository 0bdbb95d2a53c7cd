"""Logit lens of a model of the lab."""

from __future__ import annotations

from serving.requests.hub import HubRequest
from serving.requests.lens import through_the_layers
from ui.blocks.figures import lens_figure
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.head_names import layer_place
from ui.text.markdown import escape
from viz_core.hub import HubCard
from viz_core.maps.word_maps import is_word

_COLUMNS = 12  # as many as can be read side by side
_ROUNDING = {"float32": 1e-4}


def lens(chapter: Chapter, card: HubCard, request: HubRequest) -> None:
    """Show the prediction after each layer, and that the last one equals the model's."""
    labels = chapter.words.group("figure")
    seen = evaluate(request, through_the_layers)
    chapter.text("lens")
    last = seen.tokens[-1][-_COLUMNS:]
    earlier = [row[-_COLUMNS:] for row in seen.tokens[:-1]]
    early = sum(token in {row[place] for row in earlier} for place, token in enumerate(last))
    # The example in the caption follows a word, where there is one: after an end mark a model may write anything.
    words = [place for place in range(-len(last), 0) if is_word(seen.read[place])]
    at = words[-1] if words else -1
    first = next(i for i, row in enumerate(seen.tokens) if row[at] == last[at])
    chapter.figure(
        "lens",
        lens_figure(
            [row[-_COLUMNS:] for row in seen.tokens],
            seen.probabilities[:, -_COLUMNS:],
            seen.final_word[:, -_COLUMNS:],
            seen.read[-_COLUMNS:],
            labels["token"],
            labels,
            layers_across=len(seen.tokens) <= len(last),  # the shorter side across: a phone is narrow
        ),
        count=len(last),
        early=early,
        layers=len(seen.tokens) - 1,
        token=escape(last[at]),
        read=escape(seen.read[at]),
        first=layer_place(first) if first else labels["input"],
    )
    with chapter.claim_row("claims-lens"):
        chapter.claim("lens", seen.residual, _ROUNDING.get(card.precision, 0.1))
