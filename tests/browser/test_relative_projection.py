"""A reader's journey: step the offset, and read the moved hand, the proof and a badge."""

from __future__ import annotations

import re

import torch
from playwright.sync_api import Page, expect

from tests.browser.charts import chart
from viz_core.lessons.relative_projection.proof import projection_residual
from viz_core.positional import sinusoidal_rows


def hand(position: int, pair: int) -> str:
    row = sinusoidal_rows(torch.tensor([position]), 32, dtype=torch.float64)[0]
    return ", ".join(f"{value:.4f}" for value in row[2 * pair : 2 * pair + 2].tolist()).replace("-", "−")


def open_chapter(page: Page, app_url: str) -> None:
    """By the table of contents, as a reader comes."""
    page.goto(app_url)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Relative projection", exact=True).click()
    page.wait_for_url("**/relative-projection")
    expect(page.get_by_role("heading", level=1, name="Relative projection")).to_be_visible()


def test_step_the_offset_and_read_the_new_numbers(page: Page, app_url: str) -> None:
    open_chapter(page, app_url)
    expect(page.get_by_role("cell", name=f"({hand(8, 3)})")).to_be_visible()
    offset = page.locator('input[aria-label="Offset δ"]')
    offset.focus()
    for _ in range(7):
        offset.press("ArrowRight")
    expect(page.get_by_role("cell", name=f"({hand(15, 3)})")).to_be_visible()
    expect(page).to_have_url(re.compile(r"rp-offset=12\b"))
    pair = page.locator('input[aria-label="Pair j"]')
    pair.focus()
    pair.press("ArrowLeft")
    expect(page.get_by_role("cell", name=f"({hand(15, 2)})")).to_be_visible()
    circle = chart(page, "rotation")
    expect(circle.get_by_text("dimension 4: sine")).to_be_visible()
    residual = float(projection_residual(12, 32, torch.arange(1000)).max())
    claim = page.locator(".st-key-claim-moves")
    claim.scroll_into_view_if_needed()
    expect(claim.locator("code")).to_have_text(f"{residual:.2g}")


def test_the_number_type_is_behind_one_button(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/relative-projection")
    page.get_by_role("button", name="More").click()
    page.get_by_role("radio", name="bfloat16").click()
    residual = float(projection_residual(5, 32, torch.arange(1000), dtype=torch.bfloat16).max())
    claim = page.locator(".st-key-claim-moves")
    claim.scroll_into_view_if_needed()
    expect(claim.locator("code")).to_have_text(f"{residual:.2g}")
    expect(page).to_have_url(re.compile("rp-type=bfloat16"))
