"""Modular addition: memorised, then generalised, and the few frequencies left in the embedding."""

from __future__ import annotations

from functools import partial

import streamlit as st

from pages.learning import figures
from pages.learning.measured_run import recorded
from ui.chapter.chapter import Chapter
from viz_core.lessons.learning.recorded_runs import (
    main_frequencies,
    memorised_at,
    mirrored_share,
    understood,
    waves_in_use,
)
from viz_core.tasks.film import SEEDS
from viz_core.tasks.generating import MODULUS, TRAINED_SHARE

NAME = "modular-addition"


def circle(chapter: Chapter) -> None:
    """One seed's curves, and the spectrum at a step."""
    chapter.text("circle", p=MODULUS, share=f"{TRAINED_SHARE:.0%}", mirrored=f"{mirrored_share():.0%}")
    chapter.fragment(partial(_seed, chapter))


def _seed(chapter: Chapter) -> None:
    seed = chapter.controls.choice("circle-seed", SEEDS, 0)
    run = recorded(NAME, seed)
    film, names = run.film, chapter.words.group("figure")
    step = int(chapter.controls.slider("circle-step", 0, film.shots[-1], film.shots[-1], film.shots[1]))
    shot = run.shot(step)
    left, right = st.columns(2, gap="medium")
    first, then = memorised_at(film), understood(film)
    with left:
        figure = figures.curve_figure({NAME: film}, step, None, names)
        chapter.figure("circle-curve", figure, right=f"{film.held_out[-1]:.0%}", last=f"{film.shots[-1]:,}")
        if first is not None and then is not None:
            values = {"first": f"{film.shots[first]:,}", "then": f"{film.shots[then]:,}"}
            chapter.finding("later", then > first, right=f"{film.held_out[first]:.0%}", **values)
    with right:
        waves = list(map(str, main_frequencies(film.spectra[shot])))
        worth, at_first = (f"{waves_in_use(film, each):.1f}" for each in (shot, 0))
        figure = figures.spectrum_figure(film.spectra, shot, names)
        chapter.figure("spectrum", figure, step=f"{film.shots[shot]:,}", worth=worth, at_first=at_first)
        chapter.text("waves", step=f"{film.shots[shot]:,}", waves=waves, worth=worth, most=film.spectra.shape[1])
