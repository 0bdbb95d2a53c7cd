"""The tree of hypotheses that beam search keeps and prunes, on a sentence where greedy search finds another result."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from pages.transformer.figures import Labels
from ui.blocks.translation import TranslationInputs
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, sentence_request
from ui.text.markdown import escape
from ui.text.numbers import localised
from ui.widgets.figure_style import KEYS, QUERIES, escape_labels, lay_out
from viz_core.lessons.transformer.beam_tree import BEAM, Node, beam_tree, sample

_MOST_STEPS = 20
_GREY = "rgba(128,128,128,0.8)"
_ROW = 84  # pixels of a step
_BELOW, _ABOVE = 0.5, 0.1  # where a line leaves and arrives, in rows: clear of the words under a marker


def hypotheses(chapter: Chapter, name: str, request: TranslationInputs) -> None:
    """Draw the tree of beam search for the sample or the reader's sentence, beside greedy search's result."""
    labels = chapter.words.group("figure")
    chapter.text("tree", beam=BEAM)
    text = request.text if chapter.controls.choice("tree", ("sample", "own"), "sample") == "own" else sample()
    tree = evaluate(sentence_request(name, text, BEAM), beam_tree)
    values: dict[str, Any] = {}
    for search, found in (("beam", tree.beam), ("greedy", tree.greedy)):
        values[f"{search}_text"] = escape(found.text)
        values[f"{search}_sum"], values[f"{search}_score"] = f"{found.log_probability:.2f}", f"{found.score:.2f}"
    chapter.text("tree-results", english=escape(text), **values)
    steps = tree.steps[: min(len(tree.beam.ids), _MOST_STEPS)]
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
        figure.add_scatter(x=x, y=y, mode="lines", line=line, name=labels[name], showlegend=named, hoverinfo="skip")
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
