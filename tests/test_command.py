"""The command `attention-atlas open FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

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
