"""A reader's journey: move the width, learn it, and take what was learned."""

from __future__ import annotations

import re

import pytest
import torch
from playwright.sync_api import Page, expect

from tests.browser.page_checks import chart
from viz_core.attention import gaussian, nadaraya_watson
from viz_core.lessons.attention_pooling.curve_fit import noisy_points


def answer(width: float, query: float) -> str:
    y_hat, _ = nadaraya_watson(*noisy_points(40, 1.0, 3), torch.tensor([query], dtype=torch.float64), gaussian(width))
    return f"{float(y_hat):.4f}"


def lines_drawn(page: Page) -> list[str]:
    """Names of the curves that the figure shows: those with a finite number."""
    plot = chart(page, "fit").locator(".js-plotly-plot")
    return plot.evaluate(
        """({ _fullData: all }) => all
            .filter(({ mode, y }) => mode === "lines" && Array.from(y).some(Number.isFinite))
            .map(({ name }) => name)"""
    )


def test_move_the_width_learn_it_and_take_it(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/attention-pooling?ap-open-numbers=true&ap-open-learn=true")
    card = page.locator(".st-key-section-numbers")
    expect(card.get_by_role("cell", name=answer(0.5, 2.5))).to_be_visible()
    width = page.locator('input[aria-label="Width"]')
    width.focus()
    for _ in range(5):
        width.press("ArrowLeft")
    expect(card.get_by_role("cell", name=answer(0.45, 2.5))).to_be_visible()
    expect(page).to_have_url(re.compile(r"ap-width=0\.45"))
    page.get_by_role("button", name="Use width 0.31").click()
    expect(card.get_by_role("cell", name=answer(0.31, 2.5))).to_be_visible()
    expect(page).to_have_url(re.compile(r"ap-width=0\.31"))


def test_draw_a_fit_by_mouse_and_keys_and_see_what_comes_out(page: Page, app_url: str) -> None:
    """On the figure itself, which shows no fit before; after, the drawing is in the address, and a link shows it."""
    page.goto(f"{app_url}/attention-pooling?ap-open-numbers=true")
    card = page.locator(".st-key-exercise-wide")
    switch = card.get_by_text("Draw it on the figure")
    switch.click()
    expect(page).to_have_url(re.compile("ap-guess-wide-drawn=true"))
    expect(page).to_have_url(re.compile("ap-width=1"))
    assert lines_drawn(page) == []
    paper, reveal = card.get_by_role("slider", name="Your curve"), card.get_by_role("button", name="Reveal")
    expect(reveal).to_be_disabled()
    paper.hover()
    paper.click(position={"x": 530, "y": 100})
    paper.press("ArrowRight")
    expect(paper).to_have_attribute("aria-valuetext", re.compile(r"^3: "))
    paper.press("ArrowUp")
    expect(paper).to_have_attribute("aria-valuenow", re.compile("^5"))
    reveal.click()
    expect(card.get_by_text("Not quite.")).to_be_visible()
    expect(page).to_have_url(re.compile(r"ap-guess-wide=\d{42}$"))
    page.reload()
    expect(card.get_by_role("button", name="Draw again")).to_be_visible()
    assert lines_drawn(page) == ["true curve", "fit"]
    over = [place.bounding_box() or {} for place in (page.locator(".st-key-figure-fit .js-plotly-plot"), paper)]
    assert over[0] == pytest.approx(over[1], abs=1)
    card.get_by_role("button", name="Draw again").click()
    expect(card.get_by_text("Not quite.")).to_have_count(0)
    switch.click()
    expect(page.locator(".st-key-section-numbers").get_by_role("cell", name=answer(1.0, 2.5))).to_be_visible()
