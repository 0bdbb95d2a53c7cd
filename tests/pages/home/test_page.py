"""The gallery."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.home.draw import chapter_picture, small_walk
from pages.home.gallery import PICTURES
from tests.pages.reading import components
from ui.blocks.linked_sentences import recorded
from ui.blocks.small_walk import FILE
from ui.chapter.contents import all_chapters
from viz_core.view.components import unframe

OpenPage = Callable[..., AppTest]


def sentences(app: AppTest) -> dict[str, Any]:
    """What the sentence on the page was given."""
    (proto,) = components(app, "linked_sentences")
    return dict(json.loads(proto.bytes))


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
print({"torch", "pandas", "transformers"} & set(sys.modules), *(each.value for each in app.caption))
"""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=PICTURES.parents[1], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("set()"), run.stdout
    assert "Looking for a device" in run.stdout


def test_another_sentence_is_translated_and_a_bad_one_explained(open_page: OpenPage) -> None:
    app = open_page("home", **{"h-text": "I'm home 🐱."})
    assert [line[:3] for line in sentences(app)["lines"]] == [["I'm", "home", "🐱"], ["Je", "suis", "chez"]]
    app.text_input(key="h-text").set_value("   ").run()
    assert app.warning
    assert sentences(app)["lines"] == recorded()["lines"]  # the page stays whole


def test_without_checkpoints_home_opens_on_what_is_stored(no_checkpoints: None, open_page: OpenPage) -> None:
    app = open_page("home", **{"h-text": "I'm home."})
    assert app.error
    assert sentences(app)["lines"] == recorded()["lines"]


def test_the_small_walk_is_still_the_model_s() -> None:
    """Its arrays may be rounded otherwise on another machine."""
    (stored, at), (drawn, start) = unframe(FILE.read_bytes()), unframe(data := small_walk())
    assert {**stored, "words": {}, "links": {}}.keys() == drawn.keys()
    assert [choice["chosen"] for choice in stored["choices"]] == [choice["chosen"] for choice in drawn["choices"]]
    for own, other in zip(stored["attentions"], drawn["attentions"], strict=True):
        count = int(np.prod(own["weights"]["shape"]))
        weights = np.frombuffer(FILE.read_bytes(), np.float32, count, at + own["weights"]["offset"])
        expected = np.frombuffer(data, np.float32, count, start + other["weights"]["offset"])
        assert np.allclose(weights, expected, atol=1e-4), "draw it anew: python -m pages.home.draw"
