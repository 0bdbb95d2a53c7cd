"""The sinusoidal table in a real browser: step a slider, point at cells, enlarge a part, read exact values."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from tests.browser.page_checks import box_of
from viz_core.lessons.sinusoidal_encoding.properties import wavelengths
from viz_core.positional import sinusoidal_table

CELL = re.compile(r"position (\d+) · dimension (\d+): (−?[\d.]+)")


def stage_of(page: Page) -> Locator:
    return page.get_by_role("application").first


def pointed_at(page: Page) -> tuple[int, int, float]:
    """Position, dimension and value of the cell whose value is on the screen."""
    tip = stage_of(page).locator(".tip")
    expect(tip).to_contain_text(CELL)
    found = CELL.search(tip.inner_text())
    assert found
    return int(found[1]), int(found[2]), float(found[3].replace("−", "-"))


def hover(page: Page, across: float, down: float) -> tuple[int, int, float]:
    """Point somewhere between the left and right, top and bottom of the map."""
    box = box_of(stage_of(page))
    x, y = box["x"] + 60 + across * (box["width"] - 80), box["y"] + 8 + down * (box["height"] - 60)
    page.mouse.move(x, y)
    return pointed_at(page)


def expect_rows_in_their_colours(stage: Locator) -> None:
    """Row 0 is 0, 1, 0, 1, ...: pale and dark red in turn."""
    row = stage.locator("canvas").first.evaluate(
        """canvas => {
            const { data, width } = canvas.getContext("2d").getImageData(0, 8, canvas.width, 1);
            return Array.from({ length: width }, (_, x) => [...data.slice(4 * x, 4 * x + 4)]);
        }"""
    )
    # Opaque and not the grey of a label.
    cells = [
        red < 150 for red, green, _, opacity in row if opacity == 255 and (green > 240 or (red > 90 and green < 10))
    ]
    assert len(cells) > 500
    assert sum(a != b for a, b in pairwise(cells)) == 31


def test_a_step_of_the_slider_makes_a_new_table_and_new_claims_and_opened_code_stays_in_the_link(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/sinusoidal-encoding")
    stage = stage_of(page)
    expect(stage).to_have_attribute("data-columns", "32")
    page.mouse.move(0, 0)
    expect_rows_in_their_colours(stage)
    slider = page.locator('input[aria-label="Dimensions d"]')
    slider.focus()
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    expect(stage).to_have_attribute("data-columns", "34")
    expect(page.get_by_text("every row has the same squared length, d/2 = 17")).to_be_attached()
    longest = float(wavelengths(34)[-1])
    expect(page.get_by_text(f"from 6.28 to {longest:,.2f}")).to_be_attached()
    P = sinusoidal_table(60, 34, dtype=torch.float64)
    seen = {hover(page, across, down) for across, down in [(0.1, 0.1), (0.4, 0.9), (0.9, 0.5)]}
    assert len(seen) == 3
    for position, dimension, value in seen:
        assert value == pytest.approx(float(P[position, dimension]), abs=1e-6)

    page.locator(".st-key-section-library summary").first.click()
    page.get_by_text("The code behind this page").click()
    expect(page.get_by_text("def sinusoidal_table")).to_be_visible()
    page.wait_for_url(re.compile("se-code=true"))
    page.reload()
    expect(page.get_by_text("def sinusoidal_table")).to_be_visible()


def test_every_cell_of_the_largest_table_is_exact_and_a_part_can_be_enlarged_and_left_again(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/sinusoidal-encoding?se-d=512&se-n=2000")
    stage = stage_of(page)
    expect(stage).to_have_attribute("data-rows", "2000")
    P = sinusoidal_table(2000, 512, dtype=torch.float64)
    spots = [(i / 7, (3 * i % 8) / 8) for i in range(8)]
    seen = [hover(page, across, down) for across, down in spots]
    assert len({position for position, _, _ in seen}) == 8
    # By keys: the first cell, then the last column ten rows down, then one row more.
    stage.focus()
    page.mouse.move(0, 0)
    expect(stage.locator(".tip")).to_be_hidden()
    for key in ("ArrowDown", "End", "PageDown", "ArrowDown"):
        page.keyboard.press(key)
    seen.append(pointed_at(page))
    assert seen[-1][:2] == (11, 511)
    expect(page.locator("[aria-live]").filter(has_text="position 11 · dimension 511")).to_be_attached()
    for position, dimension, value in seen:
        assert value == pytest.approx(float(P[position, dimension]), abs=1e-6)

    box = box_of(stage)
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 330, box["y"] + 210, steps=4)
    page.mouse.up()
    whole = page.get_by_role("button", name="Reset zoom")
    expect(whole).to_be_visible()
    top, bottom = hover(page, 0.02, 0.02), hover(page, 0.02, 0.9)
    assert 20 <= bottom[0] - top[0] <= 60  # ten pixels were about forty of the 2,000 rows
    assert top[2] == pytest.approx(float(P[top[0], top[1]]), abs=1e-6)
    whole.click()
    expect(whole).to_be_hidden()
    assert hover(page, 0.02, 0.95)[0] > 1500
