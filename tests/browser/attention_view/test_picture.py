"""Attention over a picture: a patch is clicked, and colours, numbers and thumbnails are that patch's."""

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import Page, Position, expect

from tests.browser.attention_view.live_view import LiveView, colour, patch_place, saved_npz, weights_of
from tests.viz_core.view.test_map_group import picture_group
from viz_core.maps.measures import mean_attention_distance
from viz_core.trace import AttentionCall
from viz_core.trace.points import SampledPoints
from viz_core.view.components import view_words
from viz_core.view.grouping import group_calls, with_picture
from viz_core.view.map_group import MapGroup, MapPicture
from viz_core.view.payload import View
from viz_core.view.requests import Pin
from viz_core.view.state import DisplayOptions, ViewState, over_picture

ROWS, COLUMNS = 3, 4
COVER = 0.5  # of a colour over the picture, as in over_picture.js
START = ViewState("self", 1, 2, display=DisplayOptions(mode="picture"))


@pytest.fixture(scope="module")
def group() -> MapGroup:
    """Over a black picture, so that every pixel is a colour alone."""
    black = MapPicture(np.zeros((12, 16, 3), np.uint8), (ROWS, COLUMNS), 1)
    return picture_group(rows=ROWS, columns=COLUMNS, image=black)


@pytest.fixture
def live(page: Page, group: MapGroup) -> LiveView:
    view = LiveView(page, View([group], view_words()), START)
    view.wait_until_exact()
    return view


def place(live: LiveView, row: int, column: int) -> Position:
    """The middle of a patch."""
    x, y = patch_place(live.map, (ROWS, COLUMNS), row, column)
    return {"x": x, "y": y}


def pixel(live: LiveView, at: Position) -> list[int]:
    return live.page.evaluate(
        """({ x, y }) => { const canvas = document.querySelector('[data-piece=ground]');
        const ratio = canvas.width / canvas.clientWidth;
        return [...canvas.getContext('2d').getImageData(x * ratio, y * ratio, 1, 1).data].slice(0, 3); }""",
        dict(at),
    )


def shown(live: LiveView) -> np.ndarray:
    return np.array([[pixel(live, place(live, row, column)) for column in range(COLUMNS)] for row in range(ROWS)])


def expected(weights: np.ndarray, scale: str = "sqrt") -> np.ndarray:
    """A token's row as colours over black: from 0 to its largest weight on a patch."""
    patches = weights[1:].reshape(ROWS, COLUMNS)
    return np.array([[[COVER * c for c in colour(w / patches.max(), scale)] for w in row] for row in patches])


def called(token: int) -> str:
    """A token's name in a sentence."""
    row, column = divmod(token - 1, COLUMNS)
    return "[CLS]" if not token else f"row {row + 1}, column {column + 1}"


def test_it_opens_with_the_class_token_over_the_picture(live: LiveView, group: MapGroup) -> None:
    weights = weights_of(group, 1, 2)[0]
    np.testing.assert_allclose(shown(live), expected(weights), atol=4)
    best = int(weights.argmax())
    expect(live.part("sentenceNote")).to_contain_text(f"[CLS] looks most at {called(best)}")
    distance = mean_attention_distance(torch.from_numpy(weights_of(group, 1, 2)), (ROWS, COLUMNS), (1, 1))
    value = live.page.locator("[data-measure=distance] .value")
    expect(value).to_have_text(f"{float(distance):.2f} patches")
    live.option("heads", "layer").click()
    mean = mean_attention_distance(group.calls[1].weights()[0].mean(dim=0), (ROWS, COLUMNS), (1, 1))
    expect(value).to_have_text(f"{float(mean):.2f} patches")
    assert live.sent[0] < 30_000, "no whole map is sent"


def test_click_a_patch_change_the_head_and_let_go(live: LiveView, group: MapGroup) -> None:
    before = shown(live)
    live.map.click(position=place(live, 1, 2))
    token = 1 + 1 * COLUMNS + 2
    expect(live.part("sentenceNote")).to_contain_text("Pinned: row 2, column 3.")
    live.wait_until_exact()
    after = shown(live)
    np.testing.assert_allclose(after, expected(weights_of(group, 1, 2)[token]), atol=4)
    assert np.abs(after - before).max() > 20
    live.until(lambda: live.state.pins == (Pin("query", token),))
    live.head(0, 1).click()
    live.wait_until_exact()
    np.testing.assert_allclose(shown(live), expected(weights_of(group, 0, 1)[token]), atol=4)
    live.page.keyboard.press("Escape")
    live.wait_until_exact()
    np.testing.assert_allclose(shown(live), expected(weights_of(group, 0, 1)[0]), atol=4)


def test_thumbnails_are_the_same_look_of_every_head(live: LiveView, group: MapGroup) -> None:
    live.map.click(position=place(live, 0, 3))
    live.wait_until_exact()
    token = 1 + 3
    live.page.wait_for_function(  # every thumbnail is painted, and for this token
        "pin => document.querySelector('[data-part=grid]').dataset.painted.includes(pin)", arg=f'["q{token}"]'
    )
    for layer in range(2):
        for head in range(3):
            found = live.page.evaluate(
                """([layer, head, rows, columns]) => {
                const canvas = document.querySelector(`.head[data-layer="${layer}"][data-head="${head}"] canvas`);
                const cell = canvas.width / Math.max(rows, columns);
                const top = (canvas.height - cell * rows) / 2;
                const left = (canvas.width - cell * columns) / 2;
                const context = canvas.getContext('2d');
                return Array.from({ length: rows * columns }, (_, i) => {
                  const [x, y] = [left + (i % columns + 0.5) * cell, top + (Math.floor(i / columns) + 0.5) * cell];
                  return [...context.getImageData(x, y, 1, 1).data].slice(0, 3);
                });
                }""",
                [layer, head, ROWS, COLUMNS],
            )
            weights = weights_of(group, layer, head)[token]
            np.testing.assert_allclose(np.array(found).reshape(ROWS, COLUMNS, 3), expected(weights), atol=4)


def test_several_heads_and_several_patches(live: LiveView, group: MapGroup) -> None:
    live.map.click(position=place(live, 0, 0))
    live.map.click(position=place(live, 2, 3), modifiers=["Shift"])
    live.option("heads", "layer").click()
    live.option("how", "max").click()
    live.wait_until_exact()
    layer = group.calls[1].weights()[0].amax(dim=0).numpy()
    np.testing.assert_allclose(shown(live), expected((layer[1] + layer[12]) / 2), atol=4)
    live.option("fold", "sum").click()
    values = saved_npz(live)["weights"]
    np.testing.assert_allclose(values, (layer[1] + layer[12])[None], atol=1e-6)


def test_map_and_links_are_one_click_away(live: LiveView, group: MapGroup) -> None:
    live.option("mode", "map").click()
    live.wait_until_exact()
    assert saved_npz(live)["weights"].shape == (13, 13)
    live.option("mode", "links").click()
    live.option("mode", "picture").click()
    live.wait_until_exact()
    np.testing.assert_allclose(shown(live), expected(weights_of(group, 1, 2)[0]), atol=4)
    live.map.click(position=place(live, 1, 2))  # read off the map, which is here now
    np.testing.assert_allclose(shown(live), expected(weights_of(group, 1, 2)[1 + COLUMNS + 2]), atol=4)


def test_points_of_a_query_that_is_no_patch(page: Page) -> None:
    """Queries are chosen beside the picture; a click on it chooses none. Points have the colours of their weights."""
    points = torch.tensor([[0.375, 0.5], [0.875, 5 / 6], [0.75, 0.2]]).expand(1, 2, 20, 3, 2).clone().transpose(1, 2)
    points[:, 1] = 1 - points[:, 1]
    weights = torch.tensor([0.5, 0.1, 0.4]).expand(1, 20, 2, 3).clone()
    sizes = ((ROWS, COLUMNS), (1, 2))
    calls = [AttentionCall("decoder.0.cross", SampledPoints(points, weights, sizes, (2, 1)))]
    black = Image.fromarray(np.zeros((12, 16, 3), np.uint8))
    (group,) = with_picture(group_calls(calls), black)
    live = LiveView(page, View([group], view_words()), over_picture(group))
    live.wait_until_exact()

    def at(u: float, v: float) -> Position:
        x, y = patch_place(live.map, (ROWS, COLUMNS), 0, 0)
        size = patch_place(live.map, (ROWS, COLUMNS), 0, 1)[0] - x
        return {"x": x + size * (COLUMNS * u - 0.5), "y": y + size * (ROWS * v - 0.5)}

    for (u, v), weight in zip(points[0, 0, 0].tolist(), weights[0, 0, 0].tolist(), strict=True):
        np.testing.assert_allclose(pixel(live, at(u, v)), colour(weight / 0.5, "linear"), atol=4)
    live.map.click(position=at(0.375, 0.5))
    assert live.state.pins == ()
    live.map.focus()
    live.page.keyboard.press("PageDown")
    live.until(lambda: live.state.pins == (Pin("query", 1),))
    live.wait_until_exact()
    np.testing.assert_allclose(pixel(live, at(0.625, 0.5)), colour(1, "linear"), atol=4)
