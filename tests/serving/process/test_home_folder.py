"""A home that cannot be asked anything is none; any other is left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from serving.environment import NONE, replace_unusable_home

pytestmark = pytest.mark.attack("disorder")


@pytest.mark.parametrize("home", ["/dev/null", "/dev/null/below", "/" + "x" * 5000], ids=["a file", "below", "long"])
def test_a_home_that_cannot_be_is_left(
    home: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOME", home)
    replace_unusable_home()
    assert os.environ["HOME"] == NONE
    assert "HOME: expected a readable folder" in caplog.text


def test_secrets_that_nobody_can_read_are_no_reason_to_answer_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".streamlit" / "secrets.toml").mkdir(parents=True)
    replace_unusable_home()
    assert os.environ["HOME"] == NONE


@pytest.mark.parametrize("home", ["", ".", "/proc/nowhere", "nonsense"])
def test_a_home_without_secrets_stays(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", home)
    replace_unusable_home()
    assert os.environ["HOME"] == home
