"""docs/wrong-maps.md: its code shows what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "wrong-maps.md"


def test_the_code_of_the_page_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    pieces = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    exec(compile("\n".join(pieces), PAGE.name, "exec"), {})  # it ends with assertions
    assert "theirs" in capsys.readouterr().out
