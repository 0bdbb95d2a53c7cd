"""What the chapter on linear attention says of its pictures, compared with what was drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, drawn, number, stands
from ui.text.words import load_words
from viz_core.lessons.linear_attention.layers import all_forms, draw_stream

OpenPage = Callable[..., AppTest]
CHAPTER = "linear-attention"
RULES = {name: load_words(CHAPTER, "en")(f"option.{name}") for name in ("sum", "decay", "delta")}


@pytest.mark.parametrize(("rule", "time", "seed"), [("sum", 12, 2), ("decay", 1, 0), ("delta", 16, 7)])
def test_of_the_row(open_page: OpenPage, rule: str, time: int, seed: int) -> None:
    """The three numbers add up to the row that is drawn, and the state has as many numbers as it says."""
    app = open_page(CHAPTER, **{"la-rule": RULES[rule], "la-time": str(time), "la-seed": str(seed)})
    stands(app)
    row = drawn(app, "map")[0]["z"][time - 1]
    written = [number(app, words) for words in ("weight", "on its last value,", "on earlier values,")]
    assert sum(map(abs, written)) == pytest.approx(np.abs(row).sum(), abs=0.02)
    assert not row[time:].any()
    assert number(app, f"The state after token {time}:") == drawn(app, "state")[0]["z"].size


def test_of_the_map_without_erasing(open_page: OpenPage) -> None:
    option = load_words(CHAPTER, "en")("option.no-removal")
    app = open_page(CHAPTER, **{"la-break": option})
    intact, broken = drawn(app, "map")[0]["z"], drawn(app, "map-broken")[0]["z"]
    assert np.abs(intact - broken).max() > 0.1
    error = next(text for text in (m.value for m in app.markdown) if text.startswith(":red["))
    assert float(error.split("`")[1]) == pytest.approx(number(app, "The error of all outputs is") / 100, rel=0.02)
    stream = draw_stream(2)
    faded = all_forms(stream.operator("delta", 0.6), stream.values, broken=True).map_error
    assert faded == pytest.approx(0.27, abs=0.005)
    assert number(app, "a = 0.6$ it is") == 27


def test_of_what_states_return(open_page: OpenPage) -> None:
    """Orthogonal keys: the delta rule's bars are 0; a sum's are not where a letter was written twice."""
    app = open_page(CHAPTER, **{"la-orthogonal": "true", "la-time": "16"})
    added, erased = (trace["y"] for trace in drawn(app, "errors"))
    assert np.abs(erased).max() < 1e-6
    assert added.max() > 0.5
    assert all(badges(app).values())
