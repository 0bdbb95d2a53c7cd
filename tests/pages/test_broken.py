"""Break it: each setting turns the badges it says it turns, says why, and stands in the address."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges
from tests.tiny_vit import GREY
from ui.words import load_words

OpenPage = Callable[..., AppTest]

# Of each chapter: for each setting, words of the claims that fail with it, and of no other.
BREAKS: dict[str, dict[str, list[str]]] = {
    "attention-pooling": {
        "unguarded": ["reach a key sum to 1"],
        "signed": ["above the highest"],
        "kept": ["knows all refits"],
        "no-bias": ["draws the same curve"],
    },
    "bahdanau": {
        "undivided": ["every step's weights sum to one"],
        "no-tanh": ["recorded weights are the formula's"],
        "attended": ["does not change when all source states"],
    },
    "multi-head": {
        "wrong-root": ["the output is that of", "so are the maps"],
        "dealt-out": ["end where the layer does"],
        "undivided": ["every row of every map sums to 1"],
    },
    "queries-keys-values": {
        "undivided": ["sum to 1"],
        "twins": ["finds itself alone"],
        "cold": ["weighs the same"],
        "negative": ["in the cone", "in the convex hull"],
    },
    "scoring-functions": {
        "book-mask": ["are not written to", "the guarded recipe"],
        "no-delta": ["gives the formula", "sums to zero"],
        "no-root": ["the mean entropy moves"],
    },
    "transformer": {"no-mask": ["sees its future", "changing the last word", "cached decoding"]},
    "vision-transformer": {"columns": ["rollout sums to one"], "with-positions": []},  # in another tab
}
OPENED_AT: dict[str, dict[str, str]] = {
    "scoring-functions": {"sf-section": "Why 1/√d"},
    "transformer": {"t-text": "I lost."},
    "vision-transformer": {"vt-section": "Patch lab", "vt-model": GREY},
}


@pytest.fixture
def around(request: pytest.FixtureRequest, chapter: str) -> None:
    """Small models where those that ship are large."""
    if chapter == "vision-transformer":
        request.getfixturevalue("small_vision_models")


@pytest.mark.parametrize("chapter", BREAKS)
@pytest.mark.usefixtures("around")
def test_a_broken_setting_turns_its_badges_and_says_why(open_page: OpenPage, chapter: str) -> None:
    words = load_words(chapter, "en")
    prefix = "".join(part[0] for part in chapter.split("-"))
    first = words(f"option.{next(iter(BREAKS[chapter]))}")
    app = open_page(chapter, **OPENED_AT.get(chapter, {}) | {f"{prefix}-break": first})
    control = app.segmented_control(key=f"{prefix}-break")
    assert set(control.options) == {words("option.nothing"), *(words(f"option.{name}") for name in BREAKS[chapter])}
    for name, failing in BREAKS[chapter].items():
        if name != next(iter(BREAKS[chapter])):
            app.segmented_control(key=f"{prefix}-break").set_value(name).run()
        assert not app.exception
        assert words(f"break.{name}") in [warning.value for warning in app.warning]
        failed = [claim for claim, holds in badges(app).items() if not holds]
        assert len(failed) == len(failing), failed
        for said in failing:
            assert sum(said in claim for claim in failed) == 1, failed
