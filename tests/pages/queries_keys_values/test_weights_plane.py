"""Weights as they are typed."""

from __future__ import annotations

import pytest

from pages.queries_keys_values.weights_plane import read_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.25", 0.25),
        (" 3 ", 3),
        ("0,25", 0.25),
        ("−1", -1),
        ("1/4", 0.25),
        ("-1/4", -0.25),
        ("1e2", 100),
        ("1e7", None),
        ("abc", None),
        ("", None),
        ("1/0", None),
        ("1/2/3", None),
        ("nan", None),
        ("inf", None),
        ("inf/inf", None),
    ],
)
def test_numbers_as_they_are_typed(text: str, value: float | None) -> None:
    assert read_number(text, 1e6) == value
