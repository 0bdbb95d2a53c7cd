"""The command that records the runs of the learning chapter."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recipes.__main__ import main
from recipes.task_recordings import FILMS
from viz_core.tasks.film import load_film


def test_the_command_makes_the_recorded_runs_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    only = ["--out", str(tmp_path), "--steps", "2", "--only", "repeat-one-layer", "modular-addition", "none"]
    assert main(["learning", *only, "--seeds", "1"]) == 0
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(first) == {"repeat-one-layer-1.npz", "modular-addition-1.npz", "extrapolation.json", "card.md"}
    film = load_film(tmp_path / "modular-addition-1.npz")
    assert film.plan == replace(FILMS["modular-addition"], seed=1, steps=2, every=2)
    assert film.spectra.shape == (2, 29)
    found = json.loads(first["extrapolation.json"])
    assert [len(seed) for seed in found["accuracy"]["none"].values()] == [len(found["lengths"])]
    assert "| modular-addition | 1 x 4 heads, 64 wide, decoder, learned | 2 |" in first["card.md"].decode()
    (tmp_path / "repeat-one-layer-1.npz").unlink()
    assert main(["learning", *only, "--seeds", "1"]) == 0
    again = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {name for name in first if again[name] != first[name]} <= {"repeat-one-layer-1.npz"}
    np.testing.assert_array_equal(load_film(tmp_path / "repeat-one-layer-1.npz").maps.shape, (2, 1, 4, 19, 19))


def test_an_unknown_run_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["learning", "--out", str(tmp_path), "--only", "chess"])
    assert "expected some of repeat-two-layers" in capsys.readouterr().err
