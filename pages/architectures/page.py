"""CNN, RNN or attention: cost, sequential steps and path length, drawn, counted, timed; and the words shuffled."""

from functools import partial

import streamlit as st

from pages.architectures import exercises
from pages.architectures.book import book_cards
from pages.architectures.network_figure import connection_figure
from pages.architectures.networks import WINDOWED, networks, reach_claims
from pages.architectures.predictions import sketch_the_climb
from pages.architectures.shuffle import shuffle
from pages.architectures.sizes import size_inputs
from pages.architectures.stopwatch import timing
from pages.architectures.table import curves, pairs, table
from ui.chapter.chapter import Chapter
from viz_core.attention import MultiHeadAttention
from viz_core.lessons.architectures import layer_cost, path_length
from viz_core.lessons.architectures.experiments import shuffled_residual, signal_strength
from viz_core.lessons.architectures.layers import Convolution, Recurrent, RestrictedSelfAttention, SelfAttention
from viz_core.lessons.architectures.paths import path_matrix, shortest_path
from viz_core.runtime.stopwatch import measure

chapter = Chapter("architectures")
chapter.question()
with chapter.card("networks"):
    pictures = st.container()  # above what moves them
    inputs = size_inputs(chapter)
    with pictures:
        networks(chapter, inputs)
chapter.exercise("cheapest")

chapter.heading("self")
chapter.text("self")
book_cards(chapter)

chapter.heading("table")
table(chapter, inputs)
reach_claims(chapter, inputs)
sketch_the_climb(chapter)

chapter.tabs(
    curves=lambda: curves(chapter, inputs),
    pairs=lambda: pairs(chapter, inputs),
    stopwatch=lambda: timing(chapter, inputs),
    shuffle=lambda: shuffle(chapter),
)

chapter.exercise("twice")
chapter.exercise("long", reveal=partial(exercises.long_inputs, chapter, inputs))
chapter.exercise("cheaper", reveal=partial(exercises.cheaper, chapter))
chapter.sources({"table": None, "paths": None})
chapter.code(
    MultiHeadAttention,
    SelfAttention,
    Recurrent,
    Convolution,
    RestrictedSelfAttention,
    layer_cost,
    path_length,
    shortest_path,
    signal_strength,
    shuffled_residual,
    measure,
)
names = chapter.words.group("figure")
chapter.downloads(
    {f"path_{name}": partial(path_matrix, name, inputs.drawn) for name in WINDOWED},
    figure=lambda: connection_figure("dilated", inputs.first, inputs.last, inputs.drawn, names),
)
chapter.next()
