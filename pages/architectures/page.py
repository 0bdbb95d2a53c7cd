"""CNN, RNN or attention: cost, sequential steps and path length, drawn, counted, timed; and the words shuffled."""

from pages.architectures import parts
from pages.architectures.figures import connection_figure
from ui.chapter import Chapter
from viz_core.lessons.architectures import layer_cost, path_length
from viz_core.lessons.architectures.experiments import shuffled_residual, signal_strength
from viz_core.lessons.architectures.layers import Convolution, Recurrent, RestrictedSelfAttention, SelfAttention
from viz_core.lessons.architectures.paths import path_matrix, shortest_path
from viz_core.runtime.stopwatch import measure

chapter = Chapter("architectures")
chapter.question()
with chapter.card("networks"):
    asked = parts.ask(chapter)
    parts.networks(chapter, asked)

chapter.heading("table")
parts.table(chapter, asked)
parts.reach_claims(chapter, asked)

chapter.tabs(
    curves=lambda: parts.curves(chapter, asked),
    pairs=lambda: parts.pairs(chapter, asked),
    stopwatch=lambda: parts.timing(chapter, asked),
    shuffle=lambda: parts.shuffle(chapter),
)

chapter.exercise("twice")
chapter.code(
    layer_cost,
    path_length,
    shortest_path,
    signal_strength,
    SelfAttention,
    Recurrent,
    Convolution,
    RestrictedSelfAttention,
    measure,
    shuffled_residual,
)
names = chapter.words.group("figure")
chapter.downloads(
    lambda: connection_figure("dilated", asked.first, asked.last, asked.drawn, names),
    **{f"path_{name}": path_matrix(name, asked.drawn).numpy() for name in parts.WINDOWED},
)
