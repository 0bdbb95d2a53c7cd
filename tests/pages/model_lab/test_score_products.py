"""Query times key on the page: its bars, its words and its badge are those of the library, for any pair in a link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, drawn, number, one_line, stands, texts
from tests.viz_core.hub.tiny_models import build_all
from viz_core.hub import load_hub
from viz_core.maps.score_products import score_products

pytestmark = pytest.mark.usefixtures("offline_lab")
OpenPage = Callable[..., AppTest]
PARAMETERS = {"ml-start": "The cat", "ml-new": "3", "ml-section": "Query times key", "head": "decoder-self.1.2"}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("gpt-oss", "bloom"), tmp_path_factory.mktemp("models"))


def test_a_pair_by_link_and_another_by_choice(open_page: OpenPage, folders: Path) -> None:
    """A model whose positions rotate, with grouped queries and a learned sink before all keys."""
    run = load_hub(folders / "gpt-oss", device="cpu").run("The cat", max_new_tokens=3)
    last = len(run.tokens)
    pair = {"sp-query": f"{last} {run.tokens[-1].label}", "sp-key": f"3 {run.tokens[1].label}"}
    app = open_page("model-lab", **{"ml-model": "gpt-oss", **PARAMETERS, **pair})
    stands(app)
    found = score_products(run.trace["decoder.1.self"], 2, last - 1, 2)
    bars, total, key, query = drawn(app, "score-products")
    np.testing.assert_allclose(bars["y"], found.products, atol=1e-6)
    np.testing.assert_allclose(query["z"][0], found.query, atol=1e-6)
    np.testing.assert_allclose(key["z"][0], found.key, atol=1e-6)
    assert total["y"][-1] == pytest.approx(found.score, abs=1e-6)
    assert f"The score is **{found.score:+.3f}**" in one_line(app)
    assert badges(app)["the bars add up to the score that enters the softmax"]
    assert "after the rotation" in texts(app)
    app.selectbox(key="sp-key").set_value("1 sink").run()
    bars, total, _, _ = drawn(app, "score-products")
    sink = score_products(run.trace["decoder.1.self"], 2, last - 1, 0)
    assert np.asarray(bars["y"]).tolist() == pytest.approx([*[0.0] * 8, sink.bias])
    assert number(app, "gives the weight **") == pytest.approx(sink.weight, abs=6e-4)
    app.selectbox(key="sp-query").set_value(f"1 {run.tokens[0].label}")
    app.selectbox(key="sp-key").set_value(f"4 {run.tokens[2].label}").run()
    assert "A mask hides this key" in texts(app)
    stands(app)


def test_whole_maps_have_no_products(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": "bloom", **PARAMETERS})
    assert "no score of a query and a key to take apart" in texts(app)
