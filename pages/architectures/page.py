"""CNN, RNN or attention: cost, sequential steps and path length, drawn, counted, timed; and the words shuffled."""

from functools import partial

import streamlit as st

from pages.architectures import exercises
from pages.architectures.book import the_book
from pages.architectures.network_figure import connection_figure
from pages.architectures.networks import WINDOWED, networks, reach_claims
from pages.architectures.predictions import sketch_the_climb
from pages.architectures.shuffle import shuffle
from pages.architectures.sizes import ask
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
    asked = ask(chapter)
    with pictures:
        networks(chapter, asked)
chapter.exercise("cheapest")

chapter.heading("self")
chapter.text("self")
the_book(chapter)

chapter.heading("table")
table(chapter, asked)
reach_claims(chapter, asked)
sketch_the_climb(chapter)

chapter.tabs(
    curves=lambda: curves(chapter, asked),
    pairs=lambda: pairs(chapter, asked),
    stopwatch=lambda: timing(chapter, asked),
    shuffle=lambda: shuffle(chapter),
)

chapter.exercise("twice")
chapter.exercise("long", reveal=partial(exercises.long_inputs, chapter, asked))
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
    lambda: connection_figure("dilated", asked.first, asked.last, asked.drawn, names),
    **{f"path_{name}": partial(path_matrix, name, asked.drawn) for name in WINDOWED},
)
chapter.next()
