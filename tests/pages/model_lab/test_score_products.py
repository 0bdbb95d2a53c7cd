"""Query times key on the page: its bars, its words and its badge are those of the library, for any pair in a link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, drawn, number, one_line, stands, texts
from tests.viz_core.hub.families import build_all
from viz_core.circuits import score_attribution
from viz_core.hub import load_hub
from viz_core.maps.score_products import score_products
from viz_core.trace import record

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


def test_why_this_score_adds_up_by_parts_of_the_stream(open_page: OpenPage) -> None:
    text = "The cat sat on the"
    link = {"ml-model": "writer-en", "ml-start": text, "ml-new": "0", "ml-open-products": "true"}
    app = open_page("model-lab", **link, **{"head": "decoder-self.3.3", "sp-why": "true"})
    stands(app)
    model = load_hub("writer-en", device="cpu")
    with record(values=True, states=True) as trace:
        model.network(**model.run(text, max_new_tokens=0).inputs)
    query, key = (int(app.selectbox(key=f"sp-{side}").value.split()[0]) - 1 for side in ("query", "key"))
    found = score_attribution(model.network, trace, "decoder.3.self", 3, query, key)
    (bars,) = drawn(app, "score-parts")
    assert bars["x"][-1] == pytest.approx(found.score, abs=1e-4)
    assert sum(bars["x"][:-1]) == pytest.approx(found.score, abs=1e-4)
    assert bars["x"][0] == pytest.approx(max(found.terms.sum(dim=0).tolist(), key=abs), abs=1e-4)
    assert badges(app)["the parts add up to the score"]
    app.button_group(key="sp-side").set_value(["query"]).run()
    (bars,) = drawn(app, "score-parts")
    assert bars["x"][0] == pytest.approx(max(found.terms.sum(dim=1).tolist(), key=abs), abs=1e-4)


def test_a_score_that_cannot_be_taken_apart_is_refused_in_a_sentence(open_page: OpenPage) -> None:
    """The first key is a learned sink, which no part of the stream has written."""
    pair = {"sp-query": "3 x", "sp-key": "1 sink", "sp-why": "true"}
    app = open_page("model-lab", **{"ml-model": "gpt-oss", **PARAMETERS, **pair})
    app.selectbox(key="sp-key").set_value("1 sink").run()
    assert "cannot be divided among earlier parts: the key is a learned sink" in texts(app)


def test_whole_maps_have_no_products(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": "bloom", **PARAMETERS})
    assert "no score of a query and a key" in texts(app)
