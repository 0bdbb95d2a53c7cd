"""The command `attention-atlas` with a word: open, convert, or one that it does not know."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import torch
from safetensors.torch import load_file

from attention_atlas.__main__ import lab_address, main


def test_a_folder_opens_in_the_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my model").mkdir()
    monkeypatch.chdir(tmp_path)
    found = urlsplit(lab_address(Path("./my model")))
    assert found.path == "model-lab"
    assert parse_qs(found.query) == {"ml-source": ["folder"], "ml-folder": [str(tmp_path / "my model")]}


@pytest.mark.parametrize("typed", [[], ["nowhere"]])
def test_what_is_no_folder_says_so(
    typed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["attention-atlas", "open", *typed])
    with pytest.raises(SystemExit):
        main()
    assert "expected a folder with a model" in capsys.readouterr().err


def test_a_folder_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "my model", tmp_path / "out"
    folder.mkdir()
    torch.save({"a": torch.arange(3)}, folder / "pytorch_model.bin")
    monkeypatch.setattr(sys, "argv", ["attention-atlas", "convert", str(folder), str(out)])
    main()
    assert load_file(out / "model.safetensors")["a"].tolist() == [0, 1, 2]
    shown = capsys.readouterr().out
    assert "1 of 1: pytorch_model.bin" in shown
    assert f"attention-atlas open {out}" in shown
    with pytest.raises(SystemExit, match="is in out already: nothing was written"):
        main()
    sys.argv.append("--overwrite")
    main()
    sys.argv.append("--fast")
    with pytest.raises(SystemExit):
        main()
    assert "expected at most a folder" in capsys.readouterr().err


def test_an_unknown_word_names_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["attention-atlas", "opne", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    assert "expected the command open or convert" in capsys.readouterr().err
