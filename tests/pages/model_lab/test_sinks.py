"""The sinks of a model on its page: what it says is what the library says, and each sentence is decided by the data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from serving.requests.sinks import hidden_tokens, sinks_of, windowed
from tests.pages.reading import drawn, number, one_line, stands, texts
from tests.viz_core.hub.families import build_all
from viz_core.hub import load_hub

pytestmark = pytest.mark.usefixtures("offline_lab")
OpenPage = Callable[..., AppTest]
TEXT = "The cat sat on the mat and looked at the old dog near the river."


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("gpt-oss", "bert", "t5"), tmp_path_factory.mktemp("models"))


def test_of_a_decoder_with_a_window(open_page: OpenPage, folders: Path) -> None:
    """First with too short a text, then with the longer one that it offers."""
    app = open_page("model-lab", **{"ml-model": "gpt-oss", "ml-start": "The", "ml-section": "Sinks", "ml-new": "2"})
    assert "The text has 1 tokens; at least" in texts(app)
    app.button(key="ml-longer").click().run()
    app.slider(key="ml-window").set_value(20).run()
    stands(app)
    model = load_hub(folders / "gpt-oss", device="cpu")
    run = model.run(app.text_area(key="ml-start").value, max_new_tokens=2)
    found, seen = sinks_of(model, run, "decoder-self"), windowed(model, run, 20)
    assert found.learned is not None
    np.testing.assert_allclose(drawn(app, "sinks-shares")[0]["z"], found.shares, atol=1e-6)
    np.testing.assert_allclose(drawn(app, "sinks-learned")[0]["z"], found.learned, atol=1e-6)
    np.testing.assert_allclose(drawn(app, "sinks-lengths")[0]["z"], found.lengths, atol=1e-5)
    sinking = round(8 * found.sinking)
    assert f"**{sinking}** of 8 heads exceed 0.3" in one_line(app)
    heights = [seen.full, seen.sliding, seen.with_first]
    np.testing.assert_allclose(drawn(app, "window")[0]["y"], heights, rtol=1e-5)
    assert number(app, f"**{seen.sliding:,.2f}** with the last 20; **") == pytest.approx(seen.with_first, abs=0.006)
    assert "not comparable with this model" in one_line(app), "another model's numbers are quoted, not compared"
    assert f"here, now `{seen.sliding:.0f}" not in one_line(app)


def test_of_an_encoder_whose_first_token_is_hidden(open_page: OpenPage, folders: Path) -> None:
    app = open_page("model-lab", **{"ml-model": "bert", "ml-text": TEXT, "ml-section": "Sinks"})
    stands(app)
    model = load_hub(folders / "bert", device="cpu")
    first, end, *others = hidden_tokens(model, model.run(TEXT))
    mean = np.mean([hidden.distance for hidden in others])
    heights = [hidden.distance for hidden in (first, end, *others)]
    np.testing.assert_allclose(drawn(app, "hidden")[0]["y"], heights, atol=1e-6)
    assert number(app, "is hidden from all others: **") == pytest.approx(first.distance, abs=6e-4)
    assert number(app, "** for the first,") == pytest.approx(mean, abs=6e-4)


def test_of_a_translator_its_maps_alone(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": "t5", "ml-target": "the old house", "ml-section": "Sinks"})
    stands(app)
    assert len(drawn(app, "sinks-shares")) == 1
    assert "is hidden from all others" not in texts(app)
