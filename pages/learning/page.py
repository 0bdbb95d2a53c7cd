"""Watch attention learn: a recorded run or your own, every head at every step, and lengths beyond training."""

import numpy as np

from pages.learning.circle import circle
from pages.learning.claims import claims
from pages.learning.own_run import own_run
from pages.learning.past_length import past_length
from pages.learning.recorded_run import recorded_run
from ui.chapter.chapter import Chapter
from viz_core.attention import MultiHeadAttention
from viz_core.lessons.learning.blanks import blank_spread
from viz_core.lessons.learning.heads_over_time import head_measures
from viz_core.maps.measures import induction_mass
from viz_core.tasks import Task, TaskRun, TaskTransformer
from viz_core.tasks.frequencies import embedding_spectrum

chapter = Chapter("learning")
chapter.question()
with chapter.card("run"):
    source = chapter.controls.choice("source", ("recorded", "own"), "recorded")
    run = recorded_run(chapter) if source == "recorded" else own_run(chapter)

chapter.exercise("step")
claims(chapter)
chapter.exercise("scheme")
chapter.tabs(past=lambda: past_length(chapter), circle=lambda: circle(chapter))

chapter.exercise("one-layer")
chapter.sources({"grokking": None})
chapter.code(
    MultiHeadAttention,
    Task,
    TaskTransformer,
    TaskRun,
    induction_mass,
    head_measures,
    blank_spread,
    embedding_spectrum,
)
if run is not None:
    film, measured = run.film, run.measures["previous"]
    heads = [f"{layer + 1}.{head + 1}" for layer, head in np.ndindex(measured.shape[1:])]
    arrays = {
        "previous": measured.reshape(len(film.shots), -1),
        "loss": film.loss,
        "accuracy": film.accuracy,
        "held_out": film.held_out,
        "maps": film.maps,
    }
    chapter.downloads(arrays, rows=[str(step) for step in film.shots], columns=heads)
chapter.next()
