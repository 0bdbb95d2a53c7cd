"""The command: from a folder of data to models that load and recorded runs, or a sentence about what is missing."""

import json
import shutil
import urllib.request
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest

from recipes import copying, translators
from recipes.__main__ import MEASURES, main
from recipes.alignments import aligned_samples
from recipes.classifiers import CLASSIFIERS
from recipes.copying import copying_cases
from recipes.task_recordings import FILMS
from recipes.translators import TRANSLATORS
from tests.tiny_models import TINY
from viz_core.pretrained import load
from viz_core.pretrained.familiarity import FEW, word_counts
from viz_core.tasks.film import load_film

NAME = "transformer-en-fr"
SMALL = {"num_hiddens": 16, "ffn_num_hiddens": 24, "num_heads": 2, "num_blks": 1, "dropout": 0.1}

SMALL_GRU = {"embed_size": 16, "num_hiddens": 16, "num_layers": 2, "dropout": 0.1}


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Untrained models end no sentence: what is measured of hundreds would take minutes."""
    samples = aligned_samples()[:5]
    monkeypatch.setattr("recipes.alignments.aligned_samples", lambda: samples)
    for module in (copying, translators):
        monkeypatch.setattr(module, "copying_cases", partial(copying_cases, per_kind=3))


@pytest.mark.usefixtures("few_samples")
@pytest.mark.parametrize("name", TRANSLATORS)
def test_from_sentence_pairs_to_a_model_that_loads(
    name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = TRANSLATORS[name]
    small = {"architecture": spec.architecture["architecture"], **(SMALL if name == NAME else SMALL_GRU)}
    # Each of these pairs has a number: there would be many varied ones. What a small model cannot start from goes.
    alone: dict[str, Any] = {
        "start": None,
        "teacher_share": 0.0,
        "beam_sentences": 0,
        "guide_penalty": 0.0,
        "guides": {},
        "aligned": None,
        "reader": None,
    }
    config = replace(spec.config, vary_pairs=False, **alone)
    monkeypatch.setitem(TRANSLATORS, name, replace(spec, architecture=small, config=config))
    out = tmp_path / "checkpoints" / name
    arguments = [name, "--data", str(data), "--out", str(out), "--epochs", "2"]
    assert main(arguments) == 0
    translator = load(name, device="cpu", folder=out.parent)
    assert translator.card.title == spec.title
    assert translator.card.config["model"].items() >= small.items()
    assert f"`{name}`: {spec.description},\n" in translator.card.text
    assert "188 pairs to train on,\n7 to validate, 5 to test" in translator.card.text
    translation = translator.translate("I have 3 cats.", max_new_tokens=5)
    assert len(translation.trace) == {NAME: 3, "bahdanau-en-fr": 1, "seq2seq-en-fr": 0}[name]
    training = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert [point["epoch"] for point in training["curve"]] == [1.0, 2.0]
    assert training["recipe"]["epochs"] == 2
    before = translator.card.config["sha256"]
    assert main([*arguments, "--resume"]) == 0  # nothing left to train: the same model again
    assert load(name, device="cpu", folder=out.parent).card.config["sha256"] == before


def no_network(*_: object, **__: object) -> None:
    raise URLError("no network here")


def test_reasons_not_to_train_are_sentences(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    folder, out = tmp_path / "other", str(tmp_path / "out")

    def reason(where: Path, *more: str, name: str = NAME) -> str:
        assert main([name, "--data", str(where), "--out", out, *more]) == 1
        return capsys.readouterr().err

    for name in CLASSIFIERS:
        assert reason(folder, name=name).startswith(f"cannot train {name}: ")
    error = reason(folder)
    assert "cannot be fetched: no network here; put it there yourself, as " in error
    assert error.endswith("other/fra-eng.zip\n")
    assert not Path(out).exists()
    folder.mkdir()
    (folder / "fra-eng.zip").write_bytes(b"not the archive")
    error = reason(folder)
    assert error.startswith("cannot train transformer-en-fr: fra-eng.zip: expected SHA-1 94646ad1")
    assert error.endswith("delete the file and try again\n")
    (folder / "fra.txt").write_text("no pair here\n", encoding="utf-8")
    assert "expected sentence pairs to train on and to validate with, got 0 and 0" in reason(folder)
    assert "nothing to resume from" in reason(data, "--resume")
    for name in MEASURES:
        assert main([name, "nobody", "--data", str(data)]) == 1
        assert f"{name} of nobody cannot be measured: There is no model 'nobody'" in capsys.readouterr().err


@pytest.mark.usefixtures("few_samples")
@pytest.mark.parametrize(
    ("name", "heading"), [("alignments", "Alignment"), ("copying", "Copying"), ("word-counts", "Words")]
)
def test_what_is_measured_is_written_beside_the_checkpoint_once(
    name: str, heading: str, checkpoints: Path, data: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(checkpoints / TINY, tmp_path / TINY))
    before = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    for _ in range(2):  # a second time takes the place of the first
        assert main([name, TINY, "--data", str(data), "--checkpoints", str(tmp_path)]) == 0
    after = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    found = after.pop("words" if name == "word-counts" else name)
    assert after == before
    assert (folder / "card.md").read_text(encoding="utf-8").count(f"## {heading}\n") == 1
    if name == "copying":
        assert (found["numbers"]["sentences"], found["names"]["sentences"]) == (3, 0)
    if name == "word-counts":  # of the training pairs alone; each number stands in one
        counts = word_counts(TINY, tmp_path)
        assert counts is not None
        assert (counts.sentences, counts.counts["I"], counts.counts["cats"]) == (188, FEW, FEW)
        assert found == {"sentences": 188, "different": 191, "hardly_seen": 188}


def test_a_wrong_command_line_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    complete = [NAME, "--data", "d", "--out", "o"]
    for arguments, expected in (
        (["another-model", *complete[1:]], ""),
        (["copying", NAME], "--data is required"),
        ([*complete, "--epochs", "0"], "--epochs: expected at least 1, got 0"),
        ([NAME, "--data", __file__, "--out", "o"], f"--data: expected a folder, got the file {__file__}"),
        (["learning", "--out", str(tmp_path), "--only", "chess"], "expected some of repeat-two-layers"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        error = capsys.readouterr().err
        assert stopped.value.code == 2
        assert "usage: python -m recipes" in error
        assert expected in error


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
