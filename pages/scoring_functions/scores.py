"""Every scoring function on the same queries and keys, and the weights that one word of a sentence gives to all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from jaxtyping import Float
from plotly.subplots import make_subplots

from pages.scoring_functions.figures import number_grid
from pages.scoring_functions.scaling import PAIRS, measured_width
from ui.blocks.translation import DEFAULT_HEAD, or_explain, read_or_keep, sentence_input, word_labels
from ui.chapter.chapter import Chapter
from ui.compute.models import translator
from ui.compute.slots import cached
from ui.text.markdown import escape
from ui.widgets import traces
from ui.widgets.chart import named_parts
from ui.widgets.choices import Mark, Marks
from ui.widgets.figure_style import ACCENT, KEYS, QUERIES, WEIGHTS, escape_labels, lay_out
from viz_core.attention.scores import FUNCTIONS
from viz_core.lessons.scoring_functions.mask_variants import WRONG_WEIGHTS, wrong_weights
from viz_core.lessons.scoring_functions.scaling import variance_error_allowed
from viz_core.lessons.scoring_functions.score_contest import (
    NUM_PAIRS,
    SCENES,
    ScoreResult,
    WordScores,
    book_example_error,
    contest,
    general_identity_error,
    general_projection_error,
    last_layer_input,
    word_scores,
)
from viz_core.pretrained.samples import sentence
from viz_core.pretrained.token_vectors import Tokens, sentence_tokens

MODEL = "transformer-en-fr"
MAX_TOKENS = 24
ROUNDING = 1e-5
_QUERY = {"text": sentence("cat"), "asks": 4, "which": DEFAULT_HEAD}
WITHOUT_ROOT = Marks(
    "figure-row",
    tuple(Mark((0.41, 0.59), (height - 0.04, height + 0.04), shares="x") for height in (0.5, 0.69, 1.0)),
    _QUERY | {"break": "nothing"},
    _QUERY | {"break": "no-root"},
)
"""Heights of the bar of "sleeping" before and after."""


class WordQuery(NamedTuple):
    """A word of a sentence as the query of one head."""

    tokens: Tokens
    scores: WordScores
    query: int


def sentence_weights(chapter: Chapter) -> WordQuery | None:
    """Draw the weights of one word's query on the sentence, intact and broken; return what was drawn, or None."""
    with chapter.card("words", has_question=True):
        text, model = sentence_input(chapter), or_explain(chapter, lambda: translator(MODEL))
        if model is None:
            return None
        encoder = model.model.encoder
        sizes = {"max_tokens": MAX_TOKENS, "num_hiddens": encoder.num_hiddens}
        read = partial(sentence_tokens, **sizes, translator=model, ended=True)
        tokens = read_or_keep(chapter, text, read)
        attention, n = encoder.blocks[-1].attention, len(tokens.labels)
        with chapter.main_controls():
            labels = word_labels(tokens.labels)
            query = chapter.controls.choice("asks", tuple(labels), min(4, n), labels) - 1
            with chapter.controls.more():
                heads = tuple(range(1, attention.num_heads + 1))
                head = int(chapter.controls.select("which", heads, DEFAULT_HEAD)) - 1
            broken = chapter.break_it(*WRONG_WEIGHTS)
        word_query = WordQuery(tokens, word_scores(attention, last_layer_input(encoder, tokens.X), head), query)
        with st.container(key="one-word"):  # which the tour hides as a whole
            chapter.side_by_side(broken, partial(_weights, chapter, word_query))
            chapter.text("steps", layer=len(encoder.blocks), head=head + 1, **_steps_to_largest(word_query))
    return word_query


def heights(chapter: Chapter) -> Marks:
    """Return the marks of the question, on the broken figure while it is beside the intact one."""
    broken = st.session_state.get(chapter.controls.key("break"), "nothing") != "nothing"
    return replace(WITHOUT_ROOT, figure="figure-row-2") if broken else WITHOUT_ROOT


def _steps_to_largest(word_query: WordQuery) -> dict[str, Any]:
    """From the product of query and key to the weight, for the key with the largest weight."""
    tokens, made, query = word_query
    scores = made.scores(query).double()
    key = int(scores.argmax())
    exponentials = scores.exp()
    return {
        "query": escape(tokens.labels[query]),
        "key": escape(tokens.labels[key]),
        "w": made.queries.shape[1],
        "product": f"{float(made.terms(query, key).sum()):.2f}",
        "score": f"{float(scores[key]):.3f}",
        "exponential": f"{float(exponentials[key]):,.1f}",
        "sum": f"{float(exponentials.sum()):,.1f}",
        "weight": f"{float(made.weights(query)[key]):.2f}",
    }


def _weights(chapter: Chapter, word_query: WordQuery, broken: str) -> None:
    tokens, made, query = word_query
    width = made.queries.shape[1]
    weights = wrong_weights(broken, made.scores(query), width) if broken else made.weights(query)
    values = weights.double().numpy()
    chapter.figure(
        "row",
        row_figure(values, tokens.labels, bool(broken), chapter.words("words.weight")),
        query=escape(tokens.labels[query]),
        weights=[f"{escape(label)} {weight:.2f}" for label, weight in zip(tokens.labels, values, strict=True)],
    )
    divided = 1 if broken == "no-root" else width
    with chapter.claim_row("claims-words"):
        chapter.claim("row-sum", abs(float(values.sum()) - 1), ROUNDING)
        chapter.claim_at_least("positive", float(values.min()), 0.0)
        chapter.claim(
            "unit-variance",
            lambda: abs(measured_width(width).variance / divided - 1),
            variance_error_allowed(width, PAIRS),
            d=width,
        )


def words(chapter: Chapter, word_query: WordQuery | None) -> None:
    """Draw the query of one word, the key of another, and their product, component by component."""
    if word_query is None:
        chapter.text("words.empty")
        return
    tokens, made, query = word_query
    n = len(tokens.labels)
    labels = word_labels(tokens.labels)
    key = chapter.controls.choice("answers", tuple(labels), min(5, n), labels) - 1
    terms, scores, weights = (
        part.double().numpy() for part in (made.terms(query, key), made.scores(query), made.weights(query))
    )
    values: dict[str, Any] = {
        "query": escape(tokens.labels[query]),
        "key": escape(tokens.labels[key]),
        "w": len(terms),
        "sum": f"{terms.sum():.2f}",
        "score": f"{scores[key]:.2f}",
        "weight": f"{weights[key]:.3f}",
    }
    chapter.figure("words", words_figure(made, query, key, chapter.words.group("words")), **values)
    chapter.text("words", **values)


def words_figure(made: WordScores, query: int, key: int, names: Mapping[str, str]) -> go.Figure:
    """Above, query and key; below them the terms of their product."""
    q, k, terms = (part.numpy() for part in (made.queries[query], made.keys[key], made.terms(query, key)))
    places = np.arange(1, len(q) + 1, dtype=np.float32)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    for part, colour, name in ((q, QUERIES, names["query"]), (k, KEYS, names["key"])):
        traces.bars(figure, places, part, colour, name, row=1, col=1, hover=None)
    traces.bars(figure, places, terms, ACCENT, names["term"], row=2, col=1, hover=None)
    lay_out(figure, "", "", height=400, showlegend=True, barmode="group")
    return figure.update_xaxes(title=names["component"], row=2, col=1)


def row_figure(weights: Float[np.ndarray, " n"], labels: tuple[str, ...], broken: bool, title: str) -> go.Figure:
    """The weights of one query, one bar a word; red where they are computed wrongly."""
    words = [f"{label} {i + 1}" for i, label in enumerate(escape_labels(labels))]
    colour, written = "#c0392b" if broken else WEIGHTS, [f"{weight:.2f}" for weight in weights]
    figure = traces.bars(go.Figure(), words, weights, colour, beside=written, meta="weight", hover=None)
    shares = {"range": (0, 1.13)} if weights.min() >= 0 and weights.max() <= 1 else {}
    return lay_out(figure, "", title, height=300, yaxis=shares, meta=named_parts(x="key"))


STEPS = (0, 10, 30, 100, 300)
HIDDEN = (1, 2, 4, 8, 16, 32)


def scoring_functions(chapter: Chapter) -> None:
    """Every scoring function on the same queries and keys: its scores or weights, what it finds, what it costs."""
    controls = chapter.controls
    fixed, learning = (
        [chapter.words(f"option.{function.name}") for function in FUNCTIONS if function.learns == learns]
        for learns in (False, True)
    )
    chapter.text("scores", count=len(FUNCTIONS), fixed=fixed, learning=learning)
    name = controls.choice("scene", tuple(SCENES), "alike")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        shown = controls.choice("show", ("weights", "raw-scores"), "weights")
        steps = controls.select_slider("steps", STEPS, 0) if name != "book" else 0
        hidden = controls.select_slider("hidden", HIDDEN, 8)
        with controls.more():
            seed = int(controls.number("draw", 0, 999, 0))
    scene = SCENES[name](seed)
    d_q, d_k = scene.widths
    batch, n = scene.queries.shape[:2]
    chapter.text(f"scene.{name}", queries=batch * n, keys=scene.keys.shape[1], d_q=d_q, d_k=d_k)
    chapter.lazy("contest", lambda: _contestants(chapter, name, shown, hidden, steps, seed), 1310)
    with chapter.claim_row("claims-scores"):
        if d_q == d_k:
            chapter.claim("identity", lambda: general_identity_error(scene), ROUNDING)
        chapter.claim("projections", lambda: general_projection_error(scene, seed=seed), 1e-4)
        chapter.claim("book", book_example_error, ROUNDING)


def _contestants(chapter: Chapter, name: str, shown: str, hidden: int, steps: int, seed: int) -> None:
    """What each makes of the scene, side by side."""
    scene, entries = SCENES[name](seed), _contest(name, hidden, steps, seed)
    (d_q, d_k), batch = scene.widths, len(scene.queries)
    for start in range(0, len(FUNCTIONS), 2):
        for column, function in zip(st.columns(2), FUNCTIONS[start : start + 2], strict=False):
            with column, st.container(border=True, key=f"card-{function.name}"):
                entry = entries[function.name]
                chapter.text(f"formula.{function.name}", d_q=d_q, d_k=d_k, h=hidden, formula=function.formula)
                _score_map(chapter, entry, shown, batch)
                if entry.scores is None:
                    st.info(chapter.words("undefined", d_q=d_q, d_k=d_k), icon=":material/block:")
    _say_found(chapter, name, entries)
    _costs(chapter, entries)
    chapter.text("distances")


def _say_found(chapter: Chapter, scene: str, entries: dict[str, ScoreResult]) -> None:
    """What the scores of a scene show."""
    if scene == "alike":
        largest = {f"{e.name}_largest": f"{e.largest:.3f}" for e in entries.values() if e.weights is not None}
        chapter.guidance("scene-alike", **largest)
    elif scene == "book":
        chapter.guidance("scene-book")
    elif scene == "turned":
        found = entries["dot"].found
        chapter.finding("lost", found < 1, dot=f"{found:.0%}")


def _score_map(chapter: Chapter, entry: ScoreResult, shown: str, batch: int) -> None:
    values = entry.weights if shown == "weights" else entry.scores
    if values is None:
        return
    names = chapter.words.group("figure")
    flat = values.flatten(0, 1)
    allowed = None if shown == "raw-scores" or entry.weights is None else (entry.weights.flatten(0, 1) > 0).numpy()
    rows, columns = ([str(i + 1) for i in range(size)] for size in flat.shape)
    down = names["query" if batch == 1 else "batch"]
    limit = None if shown == "weights" else float(flat.abs().max().clamp_min(1e-6))
    figure = number_grid(flat.numpy(), rows, columns, names["key"], down, shown=allowed, limit=limit, digits=2, cell=34)
    chapter.figure("scores", figure, score=chapter.words(f"option.{entry.name}"))
    if not math.isnan(entry.found):
        st.caption(chapter.words("found", share=f"{entry.found:.0%}", guess=f"{1 / NUM_PAIRS:.0%}"))


def _costs(chapter: Chapter, entries: dict[str, ScoreResult]) -> None:
    """Parameters and multiplications of each, as a table."""
    columns = {name: chapter.words(f"column.{name}") for name in ("score", "parameters", "multiplications")}
    table = pd.DataFrame(
        {
            columns["score"]: [chapter.words(f"option.{entry.name}") for entry in entries.values()],
            columns["parameters"]: [entry.parameters for entry in entries.values()],
            columns["multiplications"]: [
                None if entry.scores is None else entry.multiplications for entry in entries.values()
            ],
        }
    )
    number = st.column_config.NumberColumn(format="localized")
    config = {columns["parameters"]: number, columns["multiplications"]: number}
    st.dataframe(table, hide_index=True, column_config=config, key="costs", placeholder="—")


@cached()
def _contest(scene: str, num_hiddens: int, steps: int, seed: int) -> dict[str, ScoreResult]:
    return contest(SCENES[scene](seed), num_hiddens, steps, seed, FUNCTIONS)
