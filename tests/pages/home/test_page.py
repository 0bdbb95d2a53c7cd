"""The gallery."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.home.draw import chapter_picture, small_walk
from pages.home.gallery import PICTURES
from tests.visits import Visits
from ui.blocks.small_walk import FILES
from ui.chapter.contents import all_chapters
from viz_core.pretrained import available
from viz_core.view.components import unframe

ROOT = PICTURES.parents[1]
OpenPage = Callable[..., AppTest]


def test_every_chapter_that_exists_has_a_picture_and_a_line(visits: Visits) -> None:
    app = visits("home")
    found = all_chapters()[1:]
    assert "transformer" in found
    assert len(app.get("image")) == len(found)
    assert {link.proto.page for link in app.get("page_link")} == {"walk", *found}


@pytest.mark.parametrize("chapter", all_chapters()[1:])
def test_every_chapter_still_draws_the_picture_that_is_kept_of_it(chapter: str) -> None:
    stored = Image.open(PICTURES / f"{chapter}.png")
    drawn = chapter_picture(chapter)
    assert drawn.size == stored.size
    assert min(stored.size) > 100
    error = np.abs(np.asarray(drawn, dtype=int) - np.asarray(stored.convert(drawn.mode), dtype=int))
    assert error.max() <= 3, "draw it anew: python -m pages.home.draw"  # another machine rounds otherwise


def test_on_a_fresh_server_nobody_waits_for_torch() -> None:
    """The device is told when it is known."""
    code = """
import sys
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("ui/app/main.py", default_timeout=60).run()
assert not app.exception and len(app.get("image")) > 10
print({"torch", "pandas", "transformers"} & set(sys.modules), app.sidebar.markdown[0].value)
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("set()"), run.stdout
    assert "Looking for a device" in run.stdout


def test_models_are_listed_with_their_scores(visits: Visits) -> None:
    app = visits("home")
    for card in available():
        line = next(m.value for m in app.markdown if card.title in m.value)
        score = card.scores.get("accuracy")
        score_text = f"{card.scores['bleu_greedy']:.1f} greedy" if score is None else f"{score:.1f}% test accuracy"
        assert score_text in line
        assert card.licence in line


def test_without_checkpoints_the_gallery_still_opens(no_checkpoints: None, open_page: OpenPage) -> None:
    app = open_page("home")
    assert "contains no model" in app.info[0].value


@pytest.mark.parametrize("kind", FILES)
def test_the_small_walk_is_still_the_model_s(kind: str) -> None:
    """Its arrays may be rounded otherwise on another machine."""
    (stored, at), (drawn, start) = unframe(FILES[kind].read_bytes()), unframe(data := small_walk(kind))
    assert {**stored, "words": {}, "links": {}}.keys() == drawn.keys()
    assert [choice["chosen"] for choice in stored["choices"]] == [choice["chosen"] for choice in drawn["choices"]]
    for own, other in zip(stored["attentions"], drawn["attentions"], strict=True):
        count = int(np.prod(own["weights"]["shape"]))
        weights = np.frombuffer(FILES[kind].read_bytes(), np.float32, count, at + own["weights"]["offset"])
        expected = np.frombuffer(data, np.float32, count, start + other["weights"]["offset"])
        assert np.allclose(weights, expected, atol=1e-4), "draw it anew: python -m pages.home.draw"
