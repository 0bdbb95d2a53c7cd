"""The page of recorded training runs: curves, and the map of every head at each snapshot."""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import torch
from torch import Tensor

from static_site.chapter_pages import chapter_page, claim_list, claim_words, note, range_control, select_control
from static_site.pages import Words, script_words
from static_site.site_files import SiteFiles
from viz_core.maps.measures import induction_mass, offset_mass
from viz_core.runtime.assets import ASSETS
from viz_core.tasks.film import BLANK, FILMS, SEEDS, Film, load_film
from viz_core.view.framing import Sections, frame

NAME = "learning"
FIRST = "repeat-two-layers"
_MEASURES = ("previous", "induction")
_BADGES = ("badge.at-least", "measured.at-least")


def add_runs(files: SiteFiles) -> dict[str, dict[str, Any]]:
    """Add a file for each recorded run, with all its seeds; what the page needs to know of each."""
    runs = {}
    for name in FILMS:
        films = [load_film(ASSETS / "learning" / f"{name}-{seed}.npz") for seed in SEEDS]
        file = files.add(f"learning/{name}.gz", gzip.compress(_packed(films), 9, mtime=0))
        shots = films[0].shots
        runs[name] = {"file": file, "task": films[0].plan.task, "last": shots[-1], "every": shots[1] - shots[0]}
    return runs


def learning_page(words: Words, runs: dict[str, dict[str, Any]], app: str) -> str:
    """The page of the recorded runs that `add_runs` added."""
    last, every = runs[FIRST]["last"], runs[FIRST]["every"]
    named = [(name, words.of(NAME, f"option.{name}")) for name in runs]
    controls = (
        select_control(words, NAME, "run", named)
        + select_control(words, NAME, "seed", [(str(seed), str(seed)) for seed in SEEDS])
        + range_control(words, NAME, "step", 0, last, last, every)
    )
    figures = (
        '<p data-part="shot"></p><div class="maps" role="img" data-part="maps"></div>'
        f'{note(words.of(NAME, "look.main"))}<div class="pair"><div class="figure" data-part="together"></div>'
        f'<div class="figure" data-part="loss"></div></div>{claim_list(words, ("learns", "finds"))}'
    )
    figure_words = ("loss", "accuracy", "updates", "held-out", *_MEASURES)
    filled = script_words(
        words,
        *((NAME, each) for each in ("shot", "alt.every-head", "alt.together", "alt.curve")),
        *((NAME, f"figure.{each}") for each in figure_words),
        *((NAME, f"option.{name}") for name in runs),
        *((NAME, f"claim.{each}") for each in ("learns", "finds")),
        *(("common", each) for each in (*_BADGES, "with-kind")),
        ("attention-view", "head_name"),
    )
    data = {"runs": runs, "words": filled | claim_words(words)}
    return chapter_page(words, NAME, controls, figures, data, app)


def _packed(films: list[Film]) -> bytes:
    sections = Sections()
    return frame({"seeds": [_film(sections, film) for film in films]}, sections)


def _film(sections: Sections, film: Film) -> dict[str, Any]:
    numbers = {"loss": film.loss, "accuracy": film.accuracy, "held_out": film.held_out}
    numbers |= {name: measured.numpy() for name, measured in _measures(film).items()}
    arrays = {name: _array(sections, values, "<f4") for name, values in numbers.items()}
    return {"shots": film.shots, "read": film.read, "maps": _array(sections, film.maps, "<f2"), **arrays}


def _measures(film: Film) -> dict[str, Tensor]:
    """Each head's weight on the previous token and on what followed the same token before; none where none is repeated.

    What is blank is the same everywhere, and no place that was seen before.
    """
    weights = torch.from_numpy(film.maps.astype(np.float32))
    weights = weights / weights.sum(dim=-1, keepdim=True)
    tokens = [token if token != BLANK else place for place, token in enumerate(film.read)]
    found = {"previous": offset_mass(weights, -1)}
    if len(set(tokens)) < len(tokens):
        found["induction"] = induction_mass(weights, tokens)
    return found


def _array(sections: Sections, values: np.ndarray, kind: str) -> dict[str, Any]:
    return {"offset": sections.add(np.ascontiguousarray(values.astype(kind))), "shape": values.shape}
