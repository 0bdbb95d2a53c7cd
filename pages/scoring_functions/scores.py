"""Every scoring function of the register on the same queries and keys."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from pages.scoring_functions.figures import number_grid
from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from viz_core.attention.scores.register import FUNCTIONS
from viz_core.lessons.scoring_functions.score_contest import (
    NUM_PAIRS,
    SCENES,
    ScoreResult,
    book_example_error,
    contest,
    general_identity_error,
    general_projection_error,
)

STEPS = (0, 10, 30, 100, 300)
HIDDEN = (1, 2, 4, 8, 16, 32)
ROUNDING = 1e-5  # sums of up to 1,024 terms in float32


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
