"""What a new language still lacks, by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ui.text.words
from ui.text.missing import missing
from ui.text.words import ENGLISH, TEXT


@pytest.fixture
def spanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the English folder, as a translator begins."""
    for name in (ENGLISH, "zh-TW"):
        shutil.copytree(TEXT / name, tmp_path / "text" / name)
    shutil.copytree(TEXT / ENGLISH, tmp_path / "text" / "es")
    (tmp_path / "text" / "es" / "errors.md").write_text("---\ntitle: x\n---\n", encoding="utf-8")
    monkeypatch.setattr(ui.text.words, "TEXT", tmp_path / "text")
    return tmp_path / "text" / "es"


def test_a_copy_is_still_in_english(spanish: Path) -> None:
    faults = list(missing("es"))
    assert "home.md: section question is still in English" in faults
    assert any(fault.startswith("errors.md: no section") for fault in faults)
    assert not [fault for fault in faults if ": no label" in fault or "placeholders" in fault or "terms.csv" in fault]


def test_each_fault_is_named(spanish: Path) -> None:
    home = (spanish / "home.md").read_text(encoding="utf-8")
    (spanish / "home.md").write_text(home.replace("## question", "## pregunta"), encoding="utf-8")
    common = (spanish / "common.md").read_text(encoding="utf-8")
    (spanish / "common.md").write_text(common.replace("{seconds}", "{segundos}"), encoding="utf-8")
    (spanish / "tour.md").unlink()
    terms = (spanish / "terms.csv").read_text(encoding="utf-8").splitlines()
    (spanish / "terms.csv").write_text("\n".join(line for line in terms if "patch" not in line), encoding="utf-8")
    faults = set(missing("es"))
    assert {"home.md: no section question", "home.md: section pregunta does not exist in English"} <= faults
    assert "common.md: section at-work has other placeholders than in English" in faults
    assert {"tour.md: the file is missing or empty", "terms.csv: no term patch"} <= faults


def test_a_language_without_a_folder_is_reported() -> None:
    assert list(missing("xx")) == ["there is no folder assets/text/xx; there are en, pt-BR, zh-TW"]
