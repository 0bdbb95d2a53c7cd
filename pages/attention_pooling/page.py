"""Attention pooling: fit a curve by weighing points, with every kernel and any width, and learn the width."""

import streamlit as st

from pages.attention_pooling import parts
from ui.chapter import Chapter
from viz_core.attention import boxcar, constant, epanechnikov, gaussian, nadaraya_watson, triangular
from viz_core.attention.kernel_pooling import kernel_weights
from viz_core.attention.kernels import Gaussian
from viz_core.lessons.attention_pooling.kernel_width import learn_width, leave_one_out, shortcut_error
from viz_core.lessons.attention_pooling.pooling_as_attention import gaussian_pooling_as_attention

chapter = Chapter("attention-pooling")
chapter.question()
with chapter.card("fit"):
    kernel = parts.ask_kernel(chapter)
    picture, side = st.columns([3, 2], gap="large")
    with side:
        pooling = parts.ask(chapter, kernel)
        if pooling is not None:
            parts.readout(chapter, pooling)
    if pooling is None:
        st.stop()
    with picture:
        figure, fit = parts.picture(chapter, pooling)

kernels, weights = st.columns(2, gap="large")
with kernels:
    chapter.heading("kernels")
    parts.kernels(chapter, pooling)
with weights:
    chapter.heading("map")
    parts.weights_map(chapter, pooling)

chapter.heading("mathematics")
chapter.text("mathematics")
parts.claims(chapter, pooling, fit)

chapter.tabs(
    widths=lambda: parts.widths(chapter, pooling),
    kernels=lambda: parts.every_kernel(chapter, pooling),
    learn=lambda: parts.learning(chapter, pooling),
)

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
    leave_one_out,
    shortcut_error,
    learn_width,
    gaussian_pooling_as_attention,
)
chapter.downloads(figure, **parts.data(fit))
