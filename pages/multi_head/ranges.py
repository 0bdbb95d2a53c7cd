"""How far each head attends, with separators and among words only."""

from __future__ import annotations

from functools import partial

from pages.multi_head.book_figures import ranges_figure
from pages.multi_head.inputs import LayerInputs
from ui.chapter.chapter import Chapter
from ui.text.numbers import localised
from viz_core.lessons.multi_head.book_examples import is_separator, mean_ranges, uniform_range


def ranges(chapter: Chapter, layer_inputs: LayerInputs, head: int) -> None:
    """Draw the mean attention distance of each head: over all tokens, and among words only."""
    weights, labels = layer_inputs.steps.weights[0], layer_inputs.tokens.labels
    places = range(len(labels))
    words = [place for place in places if not is_separator(labels[place])] or list(places)
    others = [place for place in places if place not in words]
    share = weights[..., others].sum(dim=-1).mean(dim=-1)
    found = {"all": mean_ranges(weights), "words": mean_ranges(weights, words)}
    uniform = {"all": uniform_range(places), "words": uniform_range(words)}
    closer = {name: int((distances < uniform[name]).sum()) for name, distances in found.items()}
    chapter.text(
        "ranges",
        separators=len(others),
        least=f"{float(share.min()):.0%}",
        most=f"{float(share.max()):.0%}",
    )
    names, language = chapter.words.group("figure"), chapter.words.language
    pairs = [[localised(f"{each:.2f}", language) for each in pair] for pair in zip(*found.values(), strict=True)]
    chapter.figure(
        "ranges",
        partial(ranges_figure, {name: each.numpy() for name, each in found.items()}, uniform, head, names),
        height=300,
        summary={i: f"{every} / {words_only}" for i, (every, words_only) in enumerate(pairs, start=1)},
        heads=len(weights),
        near_all=closer["all"],
        near_words=closer["words"],
        even_all=f"{uniform['all']:.2f}",
        even_words=f"{uniform['words']:.2f}",
    )
