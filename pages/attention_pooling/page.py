"""Attention pooling: fit a curve by weighing points, with every kernel and any width, and learn the width."""

from functools import partial

import streamlit as st

from pages.attention_pooling.fit import data, in_numbers, picture
from pages.attention_pooling.parts import (
    CURVE_QUERIES,
    THE_FIT,
    choose_pooling,
    draw_the_fit,
    every_kernel,
    in_the_plane,
    kernels,
    learning,
    widths,
)
from ui.chapter.chapter import Chapter
from viz_core.attention import boxcar, constant, epanechnikov, gaussian, nadaraya_watson, triangular
from viz_core.attention.kernel_pooling import Gaussian, kernel_weights
from viz_core.lessons.attention_pooling import (
    book_curve_values,
    gaussian_pooling_as_attention,
    learn_width,
    leave_one_out,
    shares,
)

chapter = Chapter("attention-pooling")
chapter.question()
chapter.definition()
hides_answer = chapter.hides_answer("wide", THE_FIT)
with chapter.card("fit", has_question=True):
    with chapter.main_controls():
        inputs = choose_pooling(chapter)
        broken = chapter.break_it("signed", "no-bias", "unguarded")
    if inputs is None:
        st.warning(chapter.words("zero-width"), icon=":material/straighten:")
    pooling = chapter.require(inputs)
    chapter.side_by_side("" if hides_answer else broken, partial(picture, chapter, pooling, hides_answer))
draw_the_fit(chapter)
chapter.takeaways()
chapter.next()


def mathematics() -> None:
    """Derive attention from kernels."""
    chapter.text("mathematics")
    chapter.source_card("curve", book_curve_values())
    chapter.exercise("sphere")


def five_kernels() -> None:
    """Compare the kernels: their shapes, then their fits."""
    kernels(chapter, pooling)
    every_kernel(chapter, pooling)


def learn() -> None:
    """Learn the width by leaving points out."""
    learning(chapter, pooling)
    chapter.exercise("descent")


def plane() -> None:
    """Pool labels in the plane."""
    in_the_plane(chapter)
    chapter.exercise("parzen")


def consistent() -> None:
    """Ask how fast the width should shrink as points are added."""
    chapter.text("consistent")
    chapter.exercise("shrink")


def code() -> None:
    """Show the code behind the page, and its data."""
    chapter.code(
        nadaraya_watson,
        kernel_weights,
        gaussian,
        Gaussian,
        boxcar,
        constant,
        triangular,
        epanechnikov,
        gaussian_pooling_as_attention,
        leave_one_out,
        learn_width,
        shares,
    )
    of_curve = [chapter.words(f"download.{name}") for name in ("query", "truth", "fit")]
    chapter.downloads(data(pooling.fit(CURVE_QUERIES)), columns=of_curve)


chapter.deeper(
    {
        "mathematics": mathematics,
        "numbers": lambda: chapter.text("hidden") if hides_answer else in_numbers(chapter, pooling),
        "widths": lambda: widths(chapter, pooling),
        "kernels": five_kernels,
        "learn": learn,
        "plane": plane,
        "consistent": consistent,
        "code": code,
    }
)
