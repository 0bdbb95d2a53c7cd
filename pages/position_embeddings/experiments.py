"""The book's three exercises as experiments: deep stacks, a learnable encoding, one vector for each offset."""

from __future__ import annotations

import hashlib
import time
from functools import partial
from typing import Any

import streamlit as st
from torch import Tensor

from pages.position_embeddings import experiment_figures as figures
from pages.position_embeddings.tokens import ROUNDING, TokenInputs
from ui.blocks.figures import residual_figure
from ui.chapter.chapter import Chapter
from ui.compute.slots import compute_cached, run_in_slot, time_limit
from viz_core.lessons.position_embeddings.learn_table import Learning, learn_table, measure_table, untrained_table
from viz_core.lessons.position_embeddings.order import offset_contrast, offset_spread
from viz_core.lessons.position_embeddings.rank_collapse import collapse_curves, largest_ratio, layers_until_alike
from viz_core.positional import sinusoidal_table
from viz_core.positional.register import BY_NAME, SCHEMES
from viz_core.positional.sinusoidal import SINUSOIDAL

POSITIONS, DIMENSIONS = 24, 32  # of the table that is learned


def experiments(chapter: Chapter, inputs: TokenInputs) -> None:
    """Three questions, one open at a time."""
    question = chapter.controls.choice("exercise", ("deep", "learnable", "offsets"), "deep")
    chapter.text(f"exercise-{question}")
    if question == "learnable":
        learnable(chapter)
    elif len(inputs.tokens.labels) < 2:
        st.info(chapter.words("one-token"), icon=":material/edit:")
    elif question == "deep":
        deep_stacks(chapter, inputs)
    else:
        offsets(chapter, inputs)


def deep_stacks(chapter: Chapter, inputs: TokenInputs) -> None:
    """How similar the tokens become through many layers, with and without skip connections."""
    chapter.exercise("deep")
    names = chapter.words.group("figure")
    depth = int(chapter.controls.slider("depth", 1, 48, 16))
    curves = _collapse(inputs.layer.input(SINUSOIDAL), depth, inputs.layer.sizes.num_heads, inputs.layer.seed)
    ends: dict[str, Any] = {name.replace("-", "_"): f"{float(curve[-1]):.1e}" for name, curve in curves.items()}
    summary = [f"{names[f'stack-{name}']} {float(curve[-1]):.1e}" for name, curve in curves.items()]
    figure = figures.collapse_figure({k: v.numpy() for k, v in curves.items()}, names)
    chapter.figure("collapse", figure, summary=summary, depth=depth, **ends)
    numbers = depth * inputs.layer.sizes.num_heads * 4096**2
    chapter.text("deep-more", depth=depth, heads=inputs.layer.sizes.num_heads, numbers=f"{numbers:,}")
    layers = layers_until_alike(curves["attention"])
    chapter.finding("collapsed", layers is not None, layers=layers, depth=depth)
    with chapter.claims():
        chapter.claim_at_most("collapse", largest_ratio(curves["attention"]), 1.0)
        farther = float((curves["attention"] - curves["skip"]).max())
        chapter.claim("skip", max(0.0, farther), 0.0)


def learnable(chapter: Chapter) -> None:
    """A position table trained live, compared with sinusoids."""
    chapter.exercise("learnable")
    controls = chapter.controls
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        reach = controls.choice("reach", (1, 2, 3, 4), 2)
        num_steps = controls.choice("steps", (500, 2000, 10000), 2000)
        start = st.button(
            chapter.words("train"), key=controls.key("train"), icon=":material/play_arrow:", type="primary"
        )
    state_key = controls.key("learning")
    if start:
        _train(chapter, state_key, reach, num_steps)
    trained_for, learning = st.session_state.get(state_key, (None, None))
    if learning is None or trained_for != (reach, num_steps):
        st.info(chapter.words("not-trained"), icon=":material/model_training:")
        return
    _show_learning(chapter, learning, reach)


def offsets(chapter: Chapter, inputs: TokenInputs) -> None:
    """One word at every position: whether an offset has one score everywhere."""
    chapter.exercise("offsets")
    names = {**chapter.words.group("figure"), **chapter.words.group("option")}
    same_word = inputs.layer.one_word()
    scores = {scheme.name: same_word.scores(scheme) for scheme in SCHEMES}
    spreads = {name: offset_spread(value) for name, value in scores.items()}
    summary = [f"{names[name]} {spread:.2g}" for name, spread in spreads.items()]
    figure = residual_figure(spreads, ROUNDING, names["spread"], names)
    chapter.figure("spread", figure, summary=summary)
    one_score = [name for name, spread in spreads.items() if spread <= ROUNDING]
    chapter.finding("one-score", bool(one_score), schemes=[names[name] for name in one_score])
    maps = {name: same_word.weights(BY_NAME[name])[inputs.head].numpy() for name in ("absolute", "relative")}
    chapter.figure("one-word", partial(figures.weights_figure, maps, names), head=inputs.head + 1)
    with chapter.claims():
        broken = chapter.break_and_explain("exchanged", "no-positions", part="experiment")
        one, many = ("absolute", "relative") if broken == "exchanged" else ("relative", "absolute")
        apart = scores["none" if broken == "no-positions" else "relative"]
        chapter.claim("one-score", spreads[one], ROUNDING)
        chapter.claim_at_least("told-apart", offset_contrast(apart), 0.1)
        chapter.claim_at_least("many-scores", spreads[many], 1e-2)


def _collapse(X: Tensor, depth: int, num_heads: int, seed: int) -> dict[str, Tensor]:
    """`collapse_curves`, cached by a digest of the tokens."""
    digest = hashlib.sha256(X.numpy().tobytes()).hexdigest()
    cache_key = (digest, tuple(X.shape), depth, num_heads, seed)
    return compute_cached(lambda: collapse_curves(X, depth, num_heads, seed), collapse_curves, cache_key, "measuring")


def _train(chapter: Chapter, state_key: str, reach: int, num_steps: int) -> None:
    """Train with a progress bar and a stop button; each state is stored, so stopping loses nothing."""
    bar = st.progress(0.0, chapter.words("training", step=0, steps=f"{num_steps:,}"))
    stop = st.empty()
    stop.button(
        chapter.words("stop"), key=chapter.controls.key("stop"), icon=":material/stop:"
    )  # a click ends this run
    begun, place = time.monotonic(), st.empty()
    series = learn_table(POSITIONS, DIMENSIONS, reach, num_steps)
    while (learning := run_in_slot(lambda: next(series, None), "training", place=place)) is not None:
        st.session_state[state_key] = ((reach, num_steps), learning)
        text = chapter.words("training", step=f"{learning.step:,}", steps=f"{num_steps:,}")
        bar.progress(learning.step / num_steps, text)
        if time.monotonic() - begun > time_limit():
            break
    bar.empty()
    stop.empty()


def _show_learning(chapter: Chapter, learning: Learning, reach: int) -> None:
    names = chapter.words.group("figure")
    found = measure_table(learning.table, reach)
    learned, sinusoidal = f"{found.loss:.4f}", f"{found.sinusoidal:.4f}"
    chapter.text("trained", step=f"{learning.step:,}", steps=f"{learning.num_steps:,}", loss=learned)
    references = {"sinusoidal": found.sinusoidal, "none": found.none}
    figure = figures.loss_figure(learning.losses, learning.num_steps, references, names)
    chapter.figure(
        "loss",
        figure,
        sinusoidal=sinusoidal,
        none=f"{found.none:.4f}",
        learned=learned,
        first=f"{learning.losses[0]:.4f}",
    )
    chapter.finding("beats", found.loss < found.sinusoidal, learned=learned, sinusoidal=sinusoidal)
    sinusoids = sinusoidal_table(POSITIONS, DIMENSIONS)
    tables = {"learned": learning.table.numpy(), "sinusoidal": sinusoids.numpy()}
    chapter.figure("similarity", figures.similarity_figure(tables, names), share=f"{found.share:.0%}", n=POSITIONS)
    maps = {"wanted": found.target.numpy(), "got": found.weights.numpy()}
    chapter.figure("wanted", figures.weights_figure(maps, names))
    with chapter.claims():
        if chapter.break_and_explain("untrained", part="experiment"):
            found = measure_table(untrained_table(POSITIONS, DIMENSIONS), reach)
        chapter.claim_at_most("learns", found.loss / found.none, 0.25)
        chapter.claim_at_least("finds-offsets", found.share, 0.9)
