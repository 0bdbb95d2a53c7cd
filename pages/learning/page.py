"""Watch attention learn: when heads find their patterns, and how far what they learned extends."""

import streamlit as st

from pages.learning.parts import ANSWERS, induction, past_length
from pages.learning.rounds import build_a_circuit, play_head
from pages.learning.runs import RUN_CONTROLS, runs
from ui.chapter.chapter import Chapter
from viz_core.attention import MultiHeadAttention
from viz_core.lessons.learning import head_measures, run_patterns
from viz_core.maps.measures import induction_mass
from viz_core.tasks import Task, TaskRun, TaskTransformer
from viz_core.tasks.run import embedding_spectrum


def sources_and_code(chapter: Chapter) -> None:
    chapter.sources({"grokking": None})
    chapter.code(
        MultiHeadAttention,
        Task,
        TaskTransformer,
        TaskRun,
        induction_mass,
        head_measures,
        embedding_spectrum,
        run_patterns,
    )


chapter = Chapter("learning")
chapter.question()
chapter.definition()
with chapter.card("main", has_question=True):
    induction(chapter)
chapter.exercise("one-layer", marks=ANSWERS)
chapter.takeaways()
chapter.next()
if not st.query_params.keys().isdisjoint(map(chapter.controls.key, RUN_CONTROLS)):
    st.session_state.setdefault(chapter.controls.key("open-run"), True)  # a link to a run shows it
chapter.deeper(
    {
        "play": lambda: play_head(chapter),
        "circuit": lambda: build_a_circuit(chapter),
        "run": lambda: runs(chapter),
        "past": lambda: past_length(chapter),
        "code": lambda: sources_and_code(chapter),
    }
)
