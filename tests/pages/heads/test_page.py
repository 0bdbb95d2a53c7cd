"""The chapter on heads: its points are the numbers of the tables, and what it says of them holds."""

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.heads.plot import all_heads
from tests.pages.reading import claims, drawn, texts
from tests.visits import Visits
from ui.compute.heads import HeadScans, HeadTable, head_scans, scanned_models
from ui.text.words import load_words
from viz_core.hub import load_hub
from viz_core.lab.scan import scan
from viz_core.maps.register import ROLES
from viz_core.pretrained.samples import SETS, scan_inputs

OpenPage = Callable[..., AppTest]
CHAPTER = "heads"
WORDS = load_words(CHAPTER, "en")


def test_every_head_is_a_point(visits: Visits) -> None:
    app = visits(CHAPTER)
    table = head_scans("writer-en").tables["narrow", "decoder-self"]
    for axis, measure in (("x", "previous"), ("y", "worth")):
        points = np.concatenate([trace[axis] for trace in drawn(app, "heads")])
        np.testing.assert_allclose(np.sort(points), np.sort(table.plotted(measure)), rtol=1e-5)
    assert [len(trace["x"]) for trace in drawn(app, "heads")] == [4, 4, 4, 4]  # a colour for each layer
    best = table.heads[int(table.plotted("worth").argmax())]
    assert f"layer {best[0] + 1}, head {best[1] + 1}** is chosen" in texts(app)


def test_an_address_opens_a_head_and_its_card(visits: Visits) -> None:
    app = visits(CHAPTER, **{"hs-model": "transformer-en-fr", "head": "decoder-cross.1.2", "hs-open-card": "true"})
    assert not app.exception
    table = head_scans("transformer-en-fr").tables["narrow", "decoder-cross"]
    place = table.heads.index((1, 2))
    written = texts(app)
    assert "layer 2, head 3 · cross-attention" in written
    assert f"**{table.part('worth', 'mean')[place]:+.3f}** nats per token" in written
    for one in table.quoted["worth"][place]:
        assert one.text.split(",")[0] in written
    assert "QK circuit: tokens of queries" in written
    assert "head=decoder-cross.1.2" in written


def test_the_query_of_an_example_is_pinned_in_its_map(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"hs-y": "previous", "hs-open-maps": "true"})
    table = head_scans("writer-en").tables["narrow", "decoder-self"]
    example = table.quoted["previous"][int(table.plotted("previous").argmax())][-1]
    assert example.percentile == 100
    assert app.query_params["pin"] == f"q{example.query}"
    run = load_hub("writer-en", device="cpu").run(example.text, max_new_tokens=0)
    assert f"query **{run.tokens[example.query].label}** is pinned" in texts(app)


def test_a_head_is_chosen_from_the_list(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"open-all": "false"})
    app.selectbox(key="hs-head").select("decoder-self.3.1").run()
    assert not app.exception
    assert "layer 4, head 2** is chosen" in texts(app)
    assert app.query_params["head"] == "decoder-self.3.1"


def test_worth_has_an_interval_on_both_sets(visits: Visits) -> None:
    app = visits(CHAPTER, **{"hs-texts": "broad", "hs-open-sets": "true"})
    assert not app.exception
    table = head_scans("writer-en").tables["broad", "decoder-self"]
    points = drawn(app, "heads")
    np.testing.assert_allclose(np.concatenate([t["y"] for t in points]), table.part("worth", "mean"), rtol=1e-5)
    lengths = np.concatenate([t["error_y"]["array"] for t in points])
    np.testing.assert_allclose(lengths, table.part("worth", "high") - table.part("worth", "mean"), atol=1e-5)
    assert "hs-texts=broad" in texts(app), "the link to the card opens it over the same texts"
    sets = drawn(app, "sets")[0]
    assert np.isfinite([*sets["error_x"]["array"], *sets["error_y"]["arrayminus"]]).all()


def test_narrow_and_broad_texts_are_drawn_side_by_side(visits: Visits) -> None:
    app = visits(CHAPTER, **{"hs-y": "entropy", "hs-open-sets": "true", "hs-open-table": "true"})
    narrow, broad = (head_scans("writer-en").tables[name, "decoder-self"] for name in SETS)
    points = drawn(app, "sets")[0]
    np.testing.assert_allclose(points["x"], narrow.part("entropy", "mean"), rtol=1e-5)
    np.testing.assert_allclose(points["y"], broad.part("entropy", "mean"), rtol=1e-5)
    assert len(app.dataframe[0].value) == 16


def test_a_table_holds_what_its_command_measures() -> None:
    """The same scan of the writer again, without worth."""
    table = head_scans("writer-en").tables["narrow", "decoder-self"]
    found = scan(load_hub("writer-en", device="cpu"), scan_inputs("narrow")).kinds["decoder-self"]
    for measure in ("previous", "entropy", "induction"):
        summary = found.summary(measure)
        np.testing.assert_allclose(table.part(measure, "mean"), summary.mean, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(table.part(measure, "low"), summary.low, rtol=1e-2, atol=1e-3)
    assert len(scan_inputs("broad")) > 20


@pytest.mark.parametrize("model", ["vit-fashion-mnist", "vit-cifar10"])
def test_heads_of_a_vision_model_are_scanned_on_pictures(visits: Visits, model: str) -> None:
    app = visits(CHAPTER, **{"hs-model": model})
    assert not app.exception
    table = head_scans(model).tables["narrow", "encoder-self"]
    assert set(table.measures) == {"diagonal", "first", "entropy", "distance", "nearby", "worth"}, "no words"
    assert sum(len(trace["x"]) for trace in drawn(app, "heads")) == len(table.heads)
    assert "class token" in app.selectbox(key="hs-x").options
    assert WORDS("unit.labels") in texts(app)
    assert "120 pictures of garments" in texts(app)
    assert len(app.get("image")) > 0


def test_a_head_is_named_by_its_layer_and_linked_by_the_place_of_its_map() -> None:
    """Layer 2 has no maps, so the attention view's second layer is layer 3 of the model."""
    table = HeadTable(((0, 0), (2, 0)), {"entropy": {"mean": [1.0, 2.0]}}, {"entropy": [[], []]})
    scans = HeadScans("", "text", "", {"narrow": 1}, {"narrow": 3}, {("narrow", "decoder-self"): table})
    heads = all_heads(scans, "narrow")
    assert {link: head.site for link, head in heads.items()} == {
        "decoder-self.0.0": "decoder.0.self",
        "decoder-self.1.0": "decoder.2.self",
    }


def test_chance_left_in_moves_every_point_of_a_role(visits: Visits) -> None:
    app = visits(CHAPTER, **{"hs-break": WORDS("option.no-chance"), "hs-y": "first"})
    table = head_scans("writer-en").tables["narrow", "decoder-self"]
    points = np.concatenate([trace["y"] for trace in drawn(app, "heads-raw")])
    np.testing.assert_allclose(np.sort(points), np.sort(table.part("first", "mean")), rtol=1e-5)
    own = [claim for claim in claims(app) if "for every role" in claim]
    assert [claim.startswith(":green[") for claim in own] == [True, False]


@pytest.mark.parametrize("model", scanned_models())
def test_means_lie_in_their_intervals(model: str) -> None:
    assert model in scanned_models()
    for (name, _), table in head_scans(model).tables.items():
        assert name in SETS
        for measure in table.measures:
            low, mean, high = (table.part(measure, part) for part in ("low", "mean", "high"))
            known = ~np.isnan(mean)
            assert (low[known] <= mean[known] + 1e-3).all()
            assert (mean[known] <= high[known] + 1e-3).all()
            if measure in ROLES:
                assert np.nanmax(table.part(measure, "chance")) < 1
