"""Every position scheme on the same tokens: side by side, one at a time, its cost, and what breaks without it."""

from functools import partial

import streamlit as st

from pages.position_embeddings.across import across_models
from pages.position_embeddings.costs import costs
from pages.position_embeddings.experiments import experiments
from pages.position_embeddings.one_scheme import one_scheme
from pages.position_embeddings.predictions import sketch_the_penalty
from pages.position_embeddings.shuffle import shuffle
from pages.position_embeddings.side_by_side import side_by_side
from pages.position_embeddings.sources import sources
from pages.position_embeddings.tokens import ask
from ui.chapter.chapter import Chapter
from viz_core.lessons.position_embeddings.order import order_residual
from viz_core.lessons.position_embeddings.schemes import SCHEMES, Scheme
from viz_core.positional import (
    AbsolutePositionEmbedding1d,
    LearnedPositionalEmbedding,
    RelativePositionEmbedding1d,
    RelativePositionEmbedding2d,
    T5RelativeBias,
    alibi_bias,
    alibi_slopes,
    apply_rotary,
    relative_to_absolute,
    relative_to_absolute_steps,
    t5_relative_position_bucket,
)

chapter = Chapter("position-embeddings")
chapter.question()
asked = ask(chapter)
if asked is None:
    st.stop()

chapter.exercise("echo")
chapter.tabs(
    schemes=lambda: side_by_side(chapter, asked),
    closer=lambda: one_scheme(chapter, asked),
    costs=lambda: costs(chapter, asked),
    shuffle=lambda: shuffle(chapter, asked.as_typed),
    across=lambda: across_models(chapter),
    experiments=lambda: experiments(chapter, asked.as_typed),
)

sketch_the_penalty(chapter)
sources(chapter)
chapter.code(
    LearnedPositionalEmbedding,
    AbsolutePositionEmbedding1d,
    RelativePositionEmbedding1d,
    relative_to_absolute,
    relative_to_absolute_steps,
    RelativePositionEmbedding2d,
    apply_rotary,
    alibi_slopes,
    alibi_bias,
    T5RelativeBias,
    t5_relative_position_bucket,
    Scheme,
    order_residual,
)
chapter.downloads(
    **{scheme.name.replace("-", "_"): partial(scheme.position_scores, asked.setting) for scheme in SCHEMES[1:]}
)
chapter.next()
