"""Known by heart, and understood: when, by hand; and an encoder that cannot tell one blank from another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.viz_core.lessons.learning.made_films import made_film
from viz_core.lessons.learning.recorded_runs import (
    main_frequencies,
    memorised_at,
    mirrored_share,
    understood,
    waves_in_use,
)
from viz_core.tasks.generating import modular_pairs

MAPS = np.ones((5, 1, 1, 1, 1))


def test_by_heart_is_a_mean_of_ten_updates_and_understood_is_to_stay() -> None:
    film = made_film(MAPS, "a", [0, 0.1, 0.96, 0.5, 0.97], [0.5] * 10 + [0.98] * 10 + [1.0] * 20)
    assert memorised_at(film) == 3
    assert understood(film) == 4
    assert understood(replace(film, held_out=np.full(5, 0.96))) == 0
    never = made_film(MAPS, "a", [0, 0, 0, 0, 0.9])
    assert (memorised_at(never), understood(never)) == (None, None)


def test_a_mirror_is_the_pair_the_other_way_round() -> None:
    trained, others = (set(map(tuple, modular_pairs(held).tolist())) for held in (False, True))
    assert len(trained | others) == 59 * 59
    assert not trained & others
    assert mirrored_share() == pytest.approx(len({(b, a) for a, b in others} & trained) / len(others))


def test_the_strongest_waves_first_and_as_few_as_carry_enough() -> None:
    spectrum = np.array([0.05, 0.5, 0.05, 0.4])
    assert main_frequencies(spectrum) == [2, 4]
    assert main_frequencies(spectrum, 0.91) == [2, 4, 1]
    film = replace(made_film(MAPS, "a", [0] * 5), spectra=np.array([[0.5, 0.5, 0, 0]]))
    assert waves_in_use(film, 0) == pytest.approx(2)
