"""CNN, RNN or attention: cost, sequential steps and path length, drawn, counted, timed; and the words shuffled."""

from functools import partial

from pages.architectures.figures import shortest_path
from pages.architectures.networks import ANSWERS, BREAKS, WINDOWED, main_figure, more_networks
from pages.architectures.parts import curves, pairs, self_attention, shuffle, size_inputs, table, timing
from ui.chapter.chapter import Chapter
from ui.compute.benchmark import measure
from viz_core.attention import MultiHeadAttention
from viz_core.lessons.architectures import (
    Convolution,
    Recurrent,
    RestrictedSelfAttention,
    SelfAttention,
    layer_cost,
    path_length,
    path_matrix,
    shuffled_residual,
    signal_strength,
)


def costs() -> None:
    """Draw Table 1 with the reader's sizes."""
    table(chapter, inputs)
    chapter.sources({"table": None, "paths": None})


def long_inputs() -> None:
    """Draw the book's two exercises on long inputs."""
    chapter.exercise("long")
    chapter.exercise("cheaper")


def code() -> None:
    """Draw source code and downloads."""
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
    chapter.downloads({f"path_{name}": partial(path_matrix, name, inputs.drawn) for name in WINDOWED})


chapter = Chapter("architectures")
chapter.question()
chapter.definition()
with chapter.card("main", has_question=True):
    with chapter.main_controls():
        inputs = size_inputs(chapter)
        broken = chapter.break_it(*BREAKS)
    chapter.side_by_side(broken, partial(main_figure, chapter, inputs, broken))

chapter.exercise("twice", marks=ANSWERS)
chapter.takeaways()
chapter.next()
chapter.deeper(
    {
        "networks": lambda: more_networks(chapter, inputs),
        "self": lambda: self_attention(chapter),
        "table": costs,
        "curves": lambda: curves(chapter, inputs),
        "pairs": lambda: pairs(chapter, inputs),
        "stopwatch": lambda: timing(chapter, inputs),
        "shuffle": lambda: shuffle(chapter),
        "long": long_inputs,
        "code": code,
    }
)
