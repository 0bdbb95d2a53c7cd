"""The table of docs/conventions.md on window settings, against models and their recorded maps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.viz_core.hub.windows import CASES, PAGE, build, recorded, seen

NO_MAPS = ("longformer", "longt5")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[2]}")
@pytest.mark.filterwarnings("ignore")
def test_the_map_shows_the_keys_that_reach_the_output(case: tuple[str, dict[str, Any], str]) -> None:
    family, options, setting = case
    model = build(family, options)
    found = seen(model)
    assert f"| {family} | {setting} | {found} |" in PAGE.read_text(encoding="utf-8")
    assert family in NO_MAPS or recorded(model) == found
