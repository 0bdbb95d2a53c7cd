"""The walk through AppTest: three models, edits and places from the URL, and what a link may ask for."""

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import components, texts
from tests.visits import Visits
from ui.blocks.linked_sentences import recorded
from viz_core.pretrained.samples import default_beginning
from viz_core.view.components import unframe

OpenPage = Callable[..., AppTest]


def header(app: AppTest) -> dict[str, Any]:
    """What the browser is sent."""
    return unframe(components(app, "walk")[0].bytes)[0]


@pytest.mark.parametrize(
    ("kind", "stacks", "written", "pattern"),
    [
        ("writer", ["decoder"], "table", "previous"),
        ("translator", ["encoder", "decoder"], "lit", "previous"),
        ("picture", ["encoder"], "T-shirt/top", "nearby"),
    ],
)
def test_each_model_walks_and_opens_on_a_head_with_a_name(
    visits: Visits, kind: str, stacks: list[str], written: str, pattern: str
) -> None:
    sent = header(visits("walk", **{"w-model": kind}))
    first, last = (each["opening"][each["opens"]][-1] for each in (sent["stacks"][0], sent["stacks"][-1]))
    assert first[1] == pattern
    if kind == "translator":  # as home does
        across, within = recorded()["across"], recorded()["within"]
        assert [sent["stacks"][1]["opens"], *last] == [across["layer"], across["head"], across["pattern"]]
        assert [sent["block"], first[0]] == [[0, within["layer"]], within["head"]]
    assert [stack["name"] for stack in sent["stacks"]] == stacks
    chosen = [choice["chosen"] for choice in sent["choices"]]
    assert written in chosen
    assert sent["links"]["softmax"][0] == "./scoring-functions"
    assert all(choice["before"] is None for choice in sent["choices"])


def test_edits_of_a_link_are_made_and_compared(visits: Visits) -> None:
    sent = header(visits("walk", **{"walk-edits": "off_decoder.0.self_0~hide_decoder.1.self_3_0"}))
    assert sent["edits"] == [["off", "decoder.0.self", "0"], ["hide", "decoder.1.self", "3", "0"]]
    assert sent["choices"][0]["before"]["chosen"]


@pytest.mark.parametrize("edits", ["off_decoder.77.self_0", "burn_x_1", "~~~", "hide_decoder.0.self_9999_0"])
def test_edits_that_cannot_be_made_are_left_out(visits: Visits, edits: str) -> None:
    assert header(visits("walk", **{"walk-edits": edits}))["edits"] == []


@pytest.mark.parametrize("place", ["sum.0.1.0.0~1~2~~stage", "softmax.0.99.0.0~~~~", "x", "mask.0..~", "softmax.0.-1"])
def test_a_place_opens_its_block_or_that_of_the_clearest_head(visits: Visits, place: str) -> None:
    sent = header(visits("walk", **{"walk-at": place}))
    assert sent["block"] == [0, 1 if ".1." in place else 2]
    assert sent["state"] == place


def test_the_text_before_the_last_change_is_compared(open_page: OpenPage) -> None:
    app = open_page("walk")
    assert header(app)["outcomes"] is None
    for text, before in (("The little boy", default_beginning()), ("The old king", "The little boy")):
        app.text_input(key="w-start").set_value(text).run()
        sides = header(app)["outcomes"]
        assert [" ".join(sides[side]["text"][1:]) for side in ("before", "now")] == [before, text]
        assert before in app.query_params["walk-was"]  # a list or its only text, as the last run has read it
    app.text_input(key="w-start").set_value("").run()
    assert header(app)["outcomes"] == sides
    assert "Below is still “The old king”" in texts(app)
    app.text_input(key="w-start").set_value("The old king").run()
    assert " ".join(header(app)["outcomes"]["before"]["text"][1:]) == "The little boy", "nothing was read between"


@pytest.mark.parametrize("was", ["", default_beginning(), "a " * 9_999])
def test_a_text_of_a_link_that_cannot_be_compared_is_left_out(visits: Visits, was: str) -> None:
    app = visits("walk", **{"walk-was": was})
    assert header(app)["outcomes"] is None
    assert "walk-was" not in app.query_params
