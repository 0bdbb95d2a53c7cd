"""The book's three exercises, answered by experiment: deep stacks, a learnable encoding, one vector an offset."""

from __future__ import annotations

import hashlib
import time
from functools import partial
from typing import Any

import streamlit as st
import torch
from torch import Tensor

from pages.position_embeddings import experiment_figures as figures
from pages.position_embeddings.tokens import ROUNDING, Asked
from ui.chapter.chapter import Chapter
from ui.compute.slots import compute_cached, run_in_slot, time_limit
from viz_core.figures.residuals import residual_figure
from viz_core.lessons.position_embeddings.learn_table import (
    Learning,
    learn_table,
    neighbour_weights,
    offset_share,
    sinusoidal_loss,
    table_weights,
    task_loss,
    untrained_table,
)
from viz_core.lessons.position_embeddings.order import offset_contrast, offset_spread
from viz_core.lessons.position_embeddings.rank_collapse import collapse_curves, largest_ratio, layers_until_alike
from viz_core.lessons.position_embeddings.schemes import BY_NAME, SCHEMES
from viz_core.positional import sinusoidal_table

POSITIONS, DIMENSIONS = 24, 32  # of the table that is learned


def experiments(chapter: Chapter, asked: Asked) -> None:
    """Three questions, one open at a time."""
    chapter.text("experiments")
    question = chapter.controls.choice("exercise", ("deep", "learnable", "offsets"), "deep")
    chapter.text(f"exercise-{question}")
    if question == "learnable":
        learnable(chapter)
    elif len(asked.tokens.labels) < 2:
        st.info(chapter.words("one-token"), icon=":material/edit:")
    elif question == "deep":
        deep_stacks(chapter, asked)
    else:
        offsets(chapter, asked)


def deep_stacks(chapter: Chapter, asked: Asked) -> None:
    """How alike the tokens become through many layers, with and without what keeps them apart."""
    chapter.exercise("deep")
    names = chapter.words.group("figure")
    depth = int(chapter.controls.slider("depth", 1, 48, 16))
    n, d = asked.setting.X.shape
    X = asked.setting.X + sinusoidal_table(n, d)
    curves = _collapse(X, depth, asked.setting.sizes.num_heads, asked.setting.seed)
    ends: dict[str, Any] = {name.replace("-", "_"): f"{float(curve[-1]):.1e}" for name, curve in curves.items()}
    summary = [f"{names[f'stack-{name}']} {float(curve[-1]):.1e}" for name, curve in curves.items()]
    figure = figures.collapse_figure({k: v.numpy() for k, v in curves.items()}, names)
    chapter.figure("collapse", figure, summary=summary, depth=depth, **ends)
    numbers = depth * asked.setting.sizes.num_heads * 4096**2
    chapter.text("deep-more", depth=depth, heads=asked.setting.sizes.num_heads, numbers=f"{numbers:,}")
    layers = layers_until_alike(curves["attention"])
    chapter.finding("collapsed", layers is not None, layers=layers, depth=depth)
    with chapter.claims():
        chapter.claim_at_most("collapse", largest_ratio(curves["attention"]), 1.0)
        chapter.claim("skip", max(0.0, float((curves["attention"] - curves["skip"]).max())), 0.0)


def learnable(chapter: Chapter) -> None:
    """A table trained while the reader watches, beside the sinusoids."""
    chapter.exercise("learnable")
    controls = chapter.controls
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        reach = controls.choice("reach", (1, 2, 3, 4), 2)
        num_steps = controls.choice("steps", (500, 2000, 10000), 2000)
        start = st.button(
            chapter.words("train"), key=controls.key("train"), icon=":material/play_arrow:", type="primary"
        )
    kept, asked_for = controls.key("learning"), (reach, num_steps)
    if start:
        _train(chapter, kept, reach, num_steps)
    trained_for, learning = st.session_state.get(kept, (None, None))
    if learning is None or trained_for != asked_for:
        st.info(chapter.words("not-trained"), icon=":material/model_training:")
        return
    _show_learning(chapter, learning, reach)


def offsets(chapter: Chapter, asked: Asked) -> None:
    """One word at every position: does an offset have one score, wherever it is found?"""
    chapter.exercise("offsets")
    names = {**chapter.words.group("figure"), **chapter.words.group("option")}
    same_word = asked.setting.one_word()
    scores = {scheme.name: scheme.scores(same_word) for scheme in SCHEMES}
    spreads = {name: offset_spread(value) for name, value in scores.items()}
    summary = [f"{names[name]} {spread:.2g}" for name, spread in spreads.items()]
    figure = residual_figure(spreads, ROUNDING, names["spread"], names)
    chapter.figure("spread", figure, summary=summary)
    one_score = [name for name, spread in spreads.items() if spread <= ROUNDING]
    chapter.finding("one-score", bool(one_score), schemes=[names[name] for name in one_score])
    maps = {name: BY_NAME[name].weights(same_word)[asked.head].numpy() for name in ("absolute", "relative")}
    chapter.figure("one-word", partial(figures.weights_figure, maps, names), head=asked.head + 1)
    with chapter.claims():
        broken = chapter.break_it("exchanged", "no-positions")
        one, many = ("absolute", "relative") if broken == "exchanged" else ("relative", "absolute")
        apart = scores["none" if broken == "no-positions" else "relative"]
        chapter.claim("one-score", spreads[one], ROUNDING)
        chapter.claim_at_least("told-apart", offset_contrast(apart), 0.1)
        chapter.claim_at_least("many-scores", spreads[many], 1e-2)


def _collapse(X: Tensor, depth: int, num_heads: int, seed: int) -> dict[str, Tensor]:
    """`collapse_curves`, known by what the tokens are."""
    digest = hashlib.sha256(X.numpy().tobytes()).hexdigest()
    asked = (digest, tuple(X.shape), depth, num_heads, seed)
    return compute_cached(lambda: collapse_curves(X, depth, num_heads, seed), collapse_curves, asked, "measuring")


def _train(chapter: Chapter, kept: str, reach: int, num_steps: int) -> None:
    """Train with a bar and a button to stop; every state reached is kept, so a stop loses nothing."""
    bar = st.progress(0.0, chapter.words("training", step=0, steps=f"{num_steps:,}"))
    stop = st.empty()
    stop.button(
        chapter.words("stop"), key=chapter.controls.key("stop"), icon=":material/stop:"
    )  # a click ends this run
    begun, place = time.monotonic(), st.empty()
    series = learn_table(POSITIONS, DIMENSIONS, reach, num_steps)
    while (learning := run_in_slot(lambda: next(series, None), "training", place=place)) is not None:
        st.session_state[kept] = ((reach, num_steps), learning)
        said = chapter.words("training", step=f"{learning.step:,}", steps=f"{num_steps:,}")
        bar.progress(learning.step / num_steps, said)
        if time.monotonic() - begun > time_limit():
            break
    bar.empty()
    stop.empty()


def _show_learning(chapter: Chapter, learning: Learning, reach: int) -> None:
    names = chapter.words.group("figure")
    wanted = neighbour_weights(POSITIONS, reach)
    weights = table_weights(learning.table)
    learned = task_loss(weights, wanted)
    references = {
        "sinusoidal": sinusoidal_loss(POSITIONS, DIMENSIONS, wanted),
        "none": task_loss(torch.full_like(wanted, 1 / POSITIONS), wanted),
    }
    chapter.text("trained", step=f"{learning.step:,}", steps=f"{learning.num_steps:,}", loss=f"{learned:.4f}")
    figure = figures.loss_figure(learning.losses, learning.num_steps, references, names)
    chapter.figure(
        "loss",
        figure,
        sinusoidal=f"{references['sinusoidal']:.4f}",
        none=f"{references['none']:.4f}",
        learned=f"{learned:.4f}",
        first=f"{learning.losses[0]:.4f}",
    )
    beaten = learned < references["sinusoidal"]
    chapter.finding("beats", beaten, learned=f"{learned:.4f}", sinusoidal=f"{references['sinusoidal']:.4f}")
    sinusoids = sinusoidal_table(POSITIONS, DIMENSIONS)
    tables = {"learned": learning.table.numpy(), "sinusoidal": sinusoids.numpy()}
    share = offset_share(learning.table @ learning.table.T)
    chapter.figure("similarity", figures.similarity_figure(tables, names), share=f"{share:.0%}", n=POSITIONS)
    chapter.figure("wanted", figures.weights_figure({"wanted": wanted.numpy(), "got": weights.numpy()}, names))
    with chapter.claims():
        if chapter.break_it("untrained"):
            table = untrained_table(POSITIONS, DIMENSIONS, torch.Generator().manual_seed(0))
            learned, share = task_loss(table_weights(table), wanted), offset_share(table @ table.T)
        chapter.claim_at_most("learns", learned / references["none"], 0.25)
        chapter.claim_at_least("finds-offsets", share, 0.9)
