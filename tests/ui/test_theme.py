"""The contrast of texts and labels with their background."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from viz_core.view import components as theme

ROOT = Path(__file__).resolve().parents[2]
THEMES = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))["theme"]


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb" (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_links_and_blue_labels_are_readable(mode: str) -> None:
    colours = THEMES[mode]
    blue = colours["chartCategoricalColors"][0]
    for written in (colours["textColor"], colours["linkColor"], blue):
        for ground in (colours["backgroundColor"], colours["secondaryBackgroundColor"]):
            assert contrast(written, ground) >= 4.5, (written, ground)  # success criterion 1.4.3, for small text


@pytest.mark.parametrize(("mode", "css"), [("light", theme.LIGHT), ("dark", theme.DARK)])
def test_a_view_without_the_app_has_the_apps_colours(mode: str, css: str) -> None:
    colours = dict(re.findall(r"--st-([\w-]+)-color: (#\w{6});", css))
    assert colours["text"] == THEMES[mode]["textColor"]
    assert colours["background"] == THEMES[mode]["backgroundColor"]
    assert colours["primary"] == THEMES[mode]["primaryColor"]
    assert ",".join(THEMES[mode]["chartCategoricalColors"][:2]) in css
