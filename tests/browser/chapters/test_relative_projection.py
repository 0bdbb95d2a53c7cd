"""A reader's journey: step the offset, and read the moved hand, the proof and a badge."""

from __future__ import annotations

import re

import torch
from playwright.sync_api import Locator, Page, expect

from tests.browser.page_checks import chart
from ui.text.numbers import localised
from viz_core.lessons.relative_projection.proof import projection_residual
from viz_core.positional import sinusoidal_rows


def hand(position: int, pair: int) -> str:
    row = sinusoidal_rows(torch.tensor([position]), 32, dtype=torch.float64)[0]
    return ", ".join(f"{value:.4f}" for value in row[2 * pair : 2 * pair + 2].tolist()).replace("-", "−")


def claimed_residual(page: Page) -> Locator:
    """How far the first badge is off, where the reader comes to it."""
    claim = page.locator(".st-key-claim-moves")
    claim.scroll_into_view_if_needed()
    return claim.locator("code")


def test_step_the_offset_change_the_number_type_and_read_the_new_numbers(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/relative-projection")
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
    expect(claimed_residual(page)).to_have_text(localised(f"{residual:.2g}", "en"))

    page.get_by_role("button", name="More").click()
    page.get_by_role("radio", name="bfloat16").click()
    residual = float(projection_residual(12, 32, torch.arange(1000), dtype=torch.bfloat16).max())
    expect(claimed_residual(page)).to_have_text(localised(f"{residual:.2g}", "en"))
    expect(page).to_have_url(re.compile("rp-type=bfloat16"))
