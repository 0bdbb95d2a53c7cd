"""What heads do: switched off, aligning words, contributions beside weights, and the parts of a logit."""

from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from pages.transformer.decoding import show_words
from pages.transformer.figures import map_figure
from serving.requests.shipped import TranslationRequest, held_out_statistics
from ui.blocks.figures import lens_figure
from ui.blocks.heads_off import name_heads, score_examples
from ui.blocks.translation import show_result
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, evaluate_model, translation, translation_maps
from ui.text.head_names import head_link, head_name, head_place, head_title
from ui.text.markdown import escape, join_sentences
from ui.text.words import current_language, load_words
from ui.widgets import traces
from ui.widgets.figure_style import SIGNED_SCALE, Labels, lay_out
from viz_core.lessons.transformer.decoding import LogitSplit, split_of_the_logits, through_the_layers
from viz_core.lessons.transformer.layers import contributions_of, mark_by_layer
from viz_core.maps.alignments import best_aligner
from viz_core.maps.contributions import ContributionKind
from viz_core.pretrained import Translation, Translator
from viz_core.pretrained.bleu import bleu_of
from viz_core.pretrained.samples import held_out
from viz_core.pretrained.tokenization import clean
from viz_core.trace import HeadsOff
from viz_core.view.map_group import MapGroup

_AT_ONCE = 25  # sentences between two steps of the progress


def show_both(
    chapter: Chapter, request: TranslationRequest, result: Translation, off: tuple[str, ...], heads: HeadsOff
) -> None:
    """Show the translation with and without the heads, changed words marked, and BLEU on demand."""
    without = translation(replace(request, off=heads))
    places = st.columns(2, gap="medium")
    both = zip(places, ("with", "without"), (result, without), words_changed(result, without), strict=True)
    for place, name, one, changed in both:
        with place, st.container(gap="xsmall", key=f"translation-{name}"):
            show_result(one)
            chapter.text(f"off-{name}", heads=name_heads(off), score=f"{one.log_probability:.2f}")
            show_words(chapter, f"said-{name}", one.words, changed)
    chapter.finding("same-translation", result.target_ids == without.target_ids)

    def statistics(heads: HeadsOff, start: int, stop: int) -> np.ndarray:
        return evaluate_model(request.model, held_out_statistics, heads, start, stop)

    score_examples(chapter, request.model, statistics, bleu_of, heads, len(held_out()), _AT_ONCE)


def maps_without(
    request: TranslationRequest, off: tuple[str, ...], heads: HeadsOff, contribution_kind: ContributionKind
) -> tuple[tuple[MapGroup, ...], tuple[str, str]]:
    """The maps of the run without these heads, and labels of both runs."""
    maps = translation_maps(replace(request, off=heads), current_language(), contribution_kind)
    return maps, (clean(request.text), f"{clean(request.text)} − {name_heads(off)}")


def words_changed(one: Translation, other: Translation) -> tuple[frozenset[int], frozenset[int]]:
    """Places of the words of two translations that no longest common subsequence of the two pairs."""
    first, second = ([word.text for word in each.words] for each in (one, other))
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    same = [(block.a + i, block.b + i) for block in matcher.get_matching_blocks() for i in range(block.size)]
    unchanged = [{pair[side] for pair in same} for side in (0, 1)]
    return frozenset(range(len(first))) - unchanged[0], frozenset(range(len(second))) - unchanged[1]


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


_ROUNDING = 1e-5
_RESTS = 0.01  # of the weight: so much more than it brings, at least


def contributions(
    chapter: Chapter, request: TranslationRequest, result: Translation, site: str, head: int, as_long: bool
) -> None:
    """Draw the open head's weights and contributions, and the share of both that the end mark gets.

    Args:
        as_long: whether the claim about the mark is broken: as if the vectors of all keys were of one length.
    """
    labels, here = chapter.words.group("figure"), head_title(head_name(site, head))
    found = evaluate(request, contributions_of, site, head)
    rows = result.source_tokens if site.startswith("encoder") else result.target_tokens
    columns = result.decoder_tokens if site.startswith("decoder") and site.endswith("self") else result.source_tokens
    mark = 0 if columns is result.decoder_tokens else len(columns) - 1
    chapter.text("contributions", head=here)
    for side, (kind, values) in zip(
        st.columns(2), {"weights": found.weights, "norms": found.norms}.items(), strict=True
    ):
        with side:
            shown = labels["weight" if kind == "weights" else "length-added"]
            figure = map_figure(values, rows, columns, shown, largest=None)
            chapter.figure(f"contribution-{kind}", figure, head=here)
    weight, norm = found.shares(mark)
    chapter.text("mark", mark=f"`{columns[mark]}`", weight=f"{weight:.0%}", norm=f"{norm:.0%}")
    layers = evaluate(request, mark_by_layer, site, mark, as_long=as_long)
    lines = [
        chapter.words("mark-layer", layer=layer, weight=f"{weight:.0%}", norm=f"{norm:.0%}")
        for layer, (weight, norm) in enumerate(zip(*layers, strict=True), start=1)
    ]
    chapter.text("mark-layers", mark=f"`{columns[mark]}`", layers=join_sentences(lines))
    with st.container(horizontal=True, key="claims-contributions"):
        chapter.claim_at_least("mark", layers.rest, _RESTS, mark=f"`{columns[mark]}`")
        chapter.claim("contributions", found.residual, _ROUNDING)


_LOGIT_ROUNDING = 1e-4
_MAX_HEADS = 12  # that a picture shows


def lens(chapter: Chapter, request: TranslationRequest, result: Translation) -> None:
    """Draw each layer's prediction, and what each part adds to the logit of the word written."""
    labels = chapter.words.group("figure")
    seen, split = evaluate(request, through_the_layers), evaluate(request, split_of_the_logits)
    chapter.text("lens")
    steps, last = len(result.target_tokens), len(seen.tokens) - 1
    early, before, after = seen.before_and_after(result.target_tokens)
    final = result.target_tokens
    figure = lens_figure(
        seen.tokens, seen.probabilities, seen.written, final, labels["said"], labels, layers_across=True
    )
    chapter.figure("lens", figure, steps=steps, early=early)
    chapter.finding(
        "early", early > 0, early=early, steps=steps, before=f"{before:.1%}", after=f"{after:.1%}", last=last
    )
    chapter.text("split")
    words = [f"{i + 1} · {token}" for i, token in enumerate(result.target_tokens)]
    step = words.index(chapter.controls.select("word", words, words[0]))
    part, linked = _strongest(split, step, labels)
    chapter.figure(
        "split",
        _split_figure(split, step, labels),
        word=escape(result.target_tokens[step]),
        rival=escape(split.rivals[step]),
        difference=f"{split.differences[step]:.2f}",
        heads=f"{split.of_heads(step):.2f}",
        rest=f"{split.differences[step] - split.of_heads(step):.2f}",
        count=len(split.heads),
        most=_MAX_HEADS,
        part=part,
        linked=linked,
    )
    with st.container(horizontal=True, key="claims-lens"):
        chapter.claim("lens", seen.residual, _LOGIT_ROUNDING)
        chapter.claim("split", split.residual, _LOGIT_ROUNDING)


def _split_figure(split: LogitSplit, step: int, labels: Labels) -> go.Figure:
    """What the strongest heads add to the difference of the two logits, largest first, coloured by sign."""
    heads = split.strongest(step, _MAX_HEADS)
    parts = split.parts[heads, step].astype(np.float32)
    limit = float(np.abs(parts).max())
    figure = traces.bars(
        go.Figure(),
        parts,
        ["<br>".join(_name(split, head, labels)) for head in heads],
        parts,
        hover="%{y}: %{x:+.3f}",
        marker={"colorscale": SIGNED_SCALE, "cmin": -limit, "cmax": limit},
        across=True,
        beside=[f"{part:+.2f}".replace("-", "−") for part in parts],
    )
    low, high = min(0.0, float(parts.min())), max(0.0, float(parts.max()))
    room = 0.35 * (high - low)  # for the numbers beside the bars, also on a phone
    wide = {"range": [low - room if low < 0 else 0.0, high + room if high > 0 else 0.0]}
    return lay_out(figure, labels["added"], "", height=480, xaxis=wide, yaxis={"autorange": "reversed"})


def _strongest(split: LogitSplit, step: int, labels: Labels) -> tuple[str, str]:
    """The name of the head that adds most, and a link to it."""
    most = split.max_for(step)
    kind, layer, head = split.names[most]
    of_kind, place = _name(split, most, labels)
    name = load_words("common")("with-kind", title=place, kind=of_kind)
    group = {"self": "decoder-self"}.get(kind, kind)
    return name, name if layer is None or head is None else head_link(group, layer, head, name)


def _name(split: LogitSplit, part: int, labels: Labels) -> tuple[str, str]:
    """Kind and place of a head: "cross-attention" and "layer 2, head 5"."""
    kind, layer, head = split.names[part]
    return labels[f"decoder.{kind}"], head_place((layer or 0) + 1, (head or 0) + 1)
