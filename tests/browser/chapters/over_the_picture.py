"""The vision chapter's view over its picture: a patch is clicked, and what is said of it is read."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.attention_view.live_view import patch_place, weight_in
from viz_core.pretrained import Classification

GRID = (7, 7)


def stage_of(page: Page) -> Locator:
    return page.locator(".view[data-mode=picture] [data-piece=stage]").first


def click_patch(page: Page, row: int, column: int) -> None:
    x, y = patch_place(stage_of(page), GRID, row, column)
    stage_of(page).click(position={"x": x, "y": y})
    page.mouse.move(0, 0)  # away, so that what is said is of all patches and not of the one pointed at


def expect_read(page: Page, found: Classification, layer: int, head: int, token: int) -> None:
    """The note under the picture says where this token looks most, and with which weight."""
    weights = found.trace[f"encoder.{layer}.self"].weights(head=head)[0, token]
    best = int(weights.argmax())
    name = "[CLS]" if best == 0 else f"row {(best - 1) // 7 + 1}, column {(best - 1) % 7 + 1}"
    note = page.locator("[data-part=sentenceNote]")
    expect(note).to_contain_text(f"looks most at {name}")
    assert weight_in(note.inner_text().rstrip(". ")) == pytest.approx(float(weights[best]), abs=0.0051)
