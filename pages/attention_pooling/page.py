"""Attention pooling: fit a curve by weighing points, with every kernel and any width, and learn the width."""

from functools import partial

import streamlit as st

from pages.attention_pooling import exercises
from pages.attention_pooling.fit import claims, data, picture, readout, weights_map
from pages.attention_pooling.kernels import every_kernel, kernels, widths
from pages.attention_pooling.learn_width import learning
from pages.attention_pooling.plane import in_the_plane, more_data
from pages.attention_pooling.pooling import choose_kernel, choose_pooling
from pages.attention_pooling.predictions import THE_FIT, draw_the_fit
from ui.chapter.chapter import Chapter
from viz_core.attention import boxcar, constant, epanechnikov, gaussian, nadaraya_watson, triangular
from viz_core.attention.kernel_pooling import kernel_weights
from viz_core.attention.kernels import Gaussian
from viz_core.lessons.attention_pooling.curve_fit import book_curve_values
from viz_core.lessons.attention_pooling.in_the_plane import shares
from viz_core.lessons.attention_pooling.kernel_width import learn_width, leave_one_out, shortcut_error
from viz_core.lessons.attention_pooling.pooling_as_attention import gaussian_pooling_as_attention

chapter = Chapter("attention-pooling")
chapter.question()
asks = chapter.hides_answer("wide", THE_FIT)
with chapter.card("fit"):
    kernel = choose_kernel(chapter)
    left, side = st.columns([3, 2], gap="large")
    with side:
        inputs = choose_pooling(chapter, kernel)
        if inputs is not None and not asks:
            readout(chapter, inputs)
    pooling = chapter.require(inputs)
    with left:
        figure, fit = picture(chapter, pooling, asks)
draw_the_fit(chapter)

for_kernels, for_weights = st.columns(2, gap="large")
with for_kernels:
    chapter.heading("kernels")
    kernels(chapter, pooling)
with for_weights:
    chapter.heading("map")
    weights_map(chapter, pooling)

chapter.exercise("sphere", reveal=partial(exercises.sphere, chapter))

chapter.heading("mathematics")
chapter.text("mathematics")
chapter.source_card("curve", book_curve_values())
claims(chapter, pooling, fit)

chapter.exercise("descent", reveal=partial(exercises.descent, chapter, pooling))
chapter.exercise("shrink", reveal=partial(exercises.shrink, chapter, pooling.noise))
chapter.tabs(
    widths=lambda: widths(chapter, pooling),
    kernels=lambda: every_kernel(chapter, pooling),
    learn=lambda: learning(chapter, pooling),
    plane=lambda: in_the_plane(chapter),
    consistent=lambda: more_data(chapter, pooling.noise),
)

chapter.exercise("parzen", reveal=partial(exercises.parzen, chapter))
chapter.exercise("narrow")
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
    shortcut_error,
    learn_width,
    shares,
)
of_curve = [chapter.words(f"download.{name}") for name in ("query", "truth", "fit")]
chapter.downloads(data(fit), figure=figure, columns=of_curve)
chapter.next()
