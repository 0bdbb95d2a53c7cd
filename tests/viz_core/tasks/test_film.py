"""What is kept of a run, and the same read from its file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from viz_core.maps.contributions import value_lengths
from viz_core.tasks import Plan, Shape, TaskRun
from viz_core.tasks.film import Film, load_film
from viz_core.tasks.frequencies import embedding_spectrum

PLAN = Plan("repeat", Shape(num_heads=2, num_hiddens=32), steps=5, every=2, batch_size=4, longest=5)


@pytest.fixture(scope="module")
def run() -> TaskRun:
    run = TaskRun(PLAN)
    list(run.advance())
    return run


def test_a_film_has_every_shot_and_the_maps_of_its_weights(run: TaskRun) -> None:
    film = Film.of(run)
    assert film.shots == (0, 2, 4, 5)
    assert film.maps.shape == (4, 2, 2, 9, 9)
    assert [len(film.loss), len(film.accuracy), len(film.held_out)] == [5, 5, 4]
    early = TaskRun(PLAN)
    list(early.advance(2))
    for shot, stopped in ((1, early), (-1, run)):
        call = stopped.probe()[1]["decoder.1.self"]
        np.testing.assert_allclose(film.maps[shot, 1], call.weights()[0], atol=1e-3)
        added = value_lengths(call, stopped.model.layers[1].attention.W_o)[0]
        np.testing.assert_allclose(film.lengths[shot, 1], added, rtol=1e-3)
    np.testing.assert_allclose(film.maps.astype(np.float32).sum(axis=-1), 1, atol=5e-3)


def test_what_is_read_and_what_is_wanted_are_a_place_apart(run: TaskRun) -> None:
    film = Film.of(run)
    places = [place for place, token in enumerate(film.wanted) if token]
    assert places == list(range(places[0], 9))
    for place in places[:-1]:
        assert film.wanted[place] == film.read[place + 1]
    period = places[0] + 1  # the first token it can know is the first of the second time
    assert [film.wanted[place] for place in places] == [film.read[place + 1 - period] for place in places]


def test_who_writes_all_at_once_reads_blanks() -> None:
    film = Film.of(TaskRun(Plan("reverse", Shape(causal=False), longest=3)))
    assert film.read[3:] == ("=", "?", "?", "?")
    assert film.wanted[4:] == film.read[2::-1]


def test_a_film_is_the_same_from_its_file(run: TaskRun, tmp_path: Path) -> None:
    film, path = Film.of(run), tmp_path / "film.npz"
    film.save(path)
    again = load_film(path)
    assert (again.plan, again.shots, again.read, again.wanted) == (film.plan, film.shots, film.read, film.wanted)
    for name in ("loss", "accuracy", "held_out", "maps", "lengths", "spectra"):
        np.testing.assert_array_equal(getattr(again, name), getattr(film, name))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 cut off", b"\x80\x04N."])
def test_a_file_that_is_no_film_is_a_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "film.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"film\.npz: expected a recorded run"):
        load_film(path)


def test_as_the_sum_says() -> None:
    E, p = torch.randn(9, 4, generator=torch.Generator().manual_seed(0)), 9
    power = [
        sum(
            abs(sum(float(E[a, d]) * complex(math.cos(x * a), math.sin(x * a)) for a in range(p))) ** 2
            for d in range(4)
        )
        for x in (2 * math.pi * k / p for k in range(1, 5))
    ]
    torch.testing.assert_close(embedding_spectrum(E), torch.tensor(power) / sum(power), atol=1e-6, rtol=0)
