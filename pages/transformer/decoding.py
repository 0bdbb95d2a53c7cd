"""How the words were chosen: their probabilities and rivals, and the tree of hypotheses of beam search.

Words are HTML of our own, with everything that comes from a model escaped. What lies behind a word shows over it, under
a pointer, at a tap, and when the Tab key comes to it.
"""

import html
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from serving.requests.shipped import TranslationRequest
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.markdown import escape
from ui.text.numbers import localised
from ui.text.words import Words
from ui.widgets import traces
from ui.widgets.choices import Mark, Marks
from ui.widgets.figure_style import KEYS, QUERIES, Labels, escape_labels, lay_out
from viz_core.lessons.transformer.decoding import BEAM, Node, beam_tree, sample
from viz_core.pretrained import Translation, Translator
from viz_core.pretrained.familiarity import FEW, word_counts
from viz_core.pretrained.samples import sentence
from viz_core.pretrained.translation import NUM_RIVALS, WordProbability

_PLACE = ":is(.st-key-translation-without, .st-key-result:not(:has(.st-key-translation-without))) .predicted-word"
_CAT = {"text": sentence("cat"), "search": "greedy"}
ANSWERS = Marks(
    "result",
    (
        Mark(part=f"{_PLACE}:nth-child(2)"),
        Mark(part=f"{_PLACE}:nth-child(5)"),
        Mark((-0.5, 2.5), (1.45, 1.95), part=f"{_PLACE}:nth-child(8)"),
    ),
    _CAT | {"without": []},
    _CAT | {"without": ["cross-3.3"]},
)
"""The words "chat" and "sur" and a place under the full stop; with a head off, of the second translation."""
_MAX_STEPS = 20
_GREY = "rgba(128,128,128,0.8)"
_ROW = 84  # pixels of a step
_BELOW, _ABOVE = 0.5, 0.1  # where a line leaves and arrives, in rows: clear of the words under a marker


def hypotheses(chapter: Chapter, request: TranslationRequest) -> None:
    """Draw the tree of beam search for the sample or the reader's sentence, beside greedy search's result."""
    labels = chapter.words.group("figure")
    chapter.text("tree", beam=BEAM)
    text = request.text if chapter.controls.choice("tree", ("sample", "own"), "sample") == "own" else sample()
    tree = evaluate(replace(request, text=text, beam=BEAM), beam_tree)
    values: dict[str, Any] = {}
    for search, found in (("beam", tree.beam), ("greedy", tree.greedy)):
        values[f"{search}_text"] = escape(found.text)
        values[f"{search}_sum"], values[f"{search}_score"] = f"{found.log_probability:.2f}", f"{found.score:.2f}"
    chapter.text("tree-results", english=escape(text), **values)
    steps = tree.steps[: min(len(tree.beam.ids), _MAX_STEPS)]
    chapter.figure("tree", _tree_figure(steps, labels, chapter.words.language), steps=len(steps), **values)
    chapter.finding("tree", tree.beam.ids != tree.greedy.ids, step=tree.greedy_steps)


def _tree_figure(steps: tuple[tuple[Node, ...], ...], labels: Labels, language: str) -> go.Figure:
    """Steps downwards; the hypotheses of a step side by side, the most likely first."""
    figure = go.Figure()
    every = [(i, j, node) for i, step in enumerate(steps) for j, node in enumerate(step)]
    for name, nodes, line in (
        ("pruned", [each for each in every if not each[2].in_beam], {"color": _GREY, "width": 1, "dash": "dot"}),
        ("kept", [each for each in every if each[2].in_beam], {"color": _GREY, "width": 1.5}),
        ("tree-beam", [each for each in every if each[2].on_beam], {"color": QUERIES, "width": 4}),
        ("tree-greedy", [each for each in every if each[2].on_greedy], {"color": KEYS, "width": 3, "dash": "dash"}),
    ):
        x = [at for i, j, node in nodes for at in (node.parent if i else None, j, None)]
        y = [at for i, _, _ in nodes for at in (i - 1 + _BELOW, i - _ABOVE, None)]
        named = name.startswith("tree-")
        traces.line(figure, x, y, name=labels[name], line=line, showlegend=named)
    for name, symbol, colour in (("kept", "circle", QUERIES), ("ended", "square", QUERIES), ("pruned", "x", _GREY)):
        nodes = [each for each in every if _kind(each[2]) == name]
        figure.add_scatter(
            x=[j for _, j, _ in nodes],
            y=[i for i, _, _ in nodes],
            mode="markers+text",
            text=[
                f"{escape_labels([node.token])[0]}<br>{localised(f'{node.log_probability:.2f}', language)}"
                for _, _, node in nodes
            ],
            textposition="bottom center",
            textfont={"size": 11},
            marker={"symbol": symbol, "color": colour, "size": 9},
            name=labels[name],
            hovertemplate="%{text}<extra></extra>",
            cliponaxis=False,
        )
    rows = list(range(len(steps)))
    return lay_out(
        figure,
        "",
        labels["tree-step"],
        height=_ROW * len(steps) + 90,
        xaxis={"range": [-0.6, max(map(len, steps)) - 0.4], "visible": False},
        yaxis={
            "range": [len(steps) - 0.2, -0.5],
            "tickvals": rows,
            "ticktext": [str(row + 1) for row in rows],
            "showgrid": False,
            "zeroline": False,
        },
    )


def _kind(node: Node) -> str:
    return "pruned" if not node.in_beam else "ended" if node.ended else "kept"


def about_words(chapter: Chapter, model: Translator, request: TranslationRequest, result: Translation) -> None:
    """Explain the words under the translation, and name the English words that were rare in training."""
    unsure = [word.text for word in result.words if word.is_uncertain]
    chapter.finding("hesitates", bool(unsure), count=len(unsure), words=len(result.words))
    counts = word_counts(model.card.name)
    rare = counts.rare_words(request.text) if counts else ()
    if counts and rare:
        named = [
            chapter.words("rare-few" if count else "rare-never", word=escape(word), count=count) for word, count in rare
        ]
        st.caption(chapter.words("rare", named=named, few=FEW, sentences=f"{counts.sentences:,}"))


def show_words(
    chapter: Chapter, key: str, words: Sequence[WordProbability], changed: Collection[int] = frozenset()
) -> None:
    """A line of words, each with its probability; those at the places `changed` are marked."""
    shown = (_word(chapter.words, f"{key}-{place}", word, place in changed) for place, word in enumerate(words))
    st.html(f'<p class="predicted">{" ".join(shown)}</p>')


def table_of_words(words: Sequence[WordProbability]) -> pd.DataFrame:
    """A row for each word: its probability, whether the model hesitates, and its rivals with theirs."""
    rows = []
    for word in words:
        row: dict[str, object] = {"word": word.text, "probability": word.probability, "hesitates": word.is_uncertain}
        for place, rival in enumerate(word.rivals, start=1):
            row |= {f"rival {place}": rival.text, f"p(rival {place})": rival.probability}
        rows.append(row)
    return pd.DataFrame(rows)


def _word(words: Words, key: str, word: WordProbability, changed: bool) -> str:
    classes = "predicted-word" + " predicted-unsure" * word.is_uncertain + " predicted-changed" * changed
    mark = "<b>?</b>" if word.is_uncertain else ""
    tip = f'<span class="predicted-tip" role="tooltip" id="{key}-tip">{_behind(words, word)}</span>'
    return (
        f'<span class="{classes}" tabindex="0" aria-describedby="{key}-tip">'
        f"<span><bdi>{html.escape(word.text)}</bdi>{mark}</span><small>{_percent(words, word.probability)}</small>"
        f"{tip}</span>"
    )


def _behind(words: Words, word: WordProbability) -> str:
    """The word's tokens where it has several, and its rivals."""
    factors = " × ".join(f"<bdi>{html.escape(token)}</bdi> {_percent(words, p)}" for token, p in word.tokens)
    whole = f"<bdi>{html.escape(word.text)}</bdi> {_percent(words, word.probability)}"
    first = f"{whole} = {factors}" if len(word.tokens) > 1 else whole
    rivals = "".join(
        f"<span><bdi>{html.escape(text)}</bdi> <span>{_percent(words, p)}</span></span>" for text, p in word.rivals
    )
    unsure = f"<i>{html.escape(words('said-unsure'))}</i>" if word.is_uncertain else ""
    return f"<b>{first}</b>{unsure}<i>{html.escape(words('said-rivals', count=NUM_RIVALS))}</i>{rivals}"


def _percent(words: Words, p: float) -> str:
    return localised(percent(p), words.language)


def percent(p: float) -> str:
    """A percentage without decimals, or with one where it is close to 0 or 100."""
    return f"{p:.0%}" if p >= 0.0995 else f"{p:.1%}" if p >= 0.0005 else "< 0.1%"
