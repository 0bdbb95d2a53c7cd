"""Atoms in a browser: pointed at, held by a click, masked; and the drawing in reach on a phone."""

import re

from playwright.sync_api import Page, expect


def test_keys_of_an_atom_are_highlighted_and_it_is_pinned_and_masked(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{app_url}/atom-mapping")
    expect(page.locator("svg.panel").first).to_be_visible()
    expect(page.get_by_role("combobox", name="Reaction")).to_be_in_viewport(ratio=1)
    for number in range(2):
        expect(page.locator("svg.panel").nth(number)).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1400, "height": 1000})
    say = page.locator(".places .say")
    expect(say).to_have_text(
        re.compile(r"^Product C6 attends to reactant C12 \(\d+%\)\. The strongest atom .* is right\.$")
    )
    page.get_by_role("button", name="product C6", exact=True).focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="product C7", exact=True)).to_be_focused()
    expect(say).to_have_text(re.compile(r"^Product C7 attends to reactant .* Symmetry makes 2 atoms equivalent\.$"))
    expect(page.locator(".tokens .placed[data-chosen]")).to_have_count(1)
    page.locator(".tokens .placed").first.hover()
    expect(say).to_have_text(re.compile(r"^Reactant C1 is attended to by product C1 \(\d+%\)"))
    product = page.get_by_role("button", name="product C6", exact=True)
    reactant = page.get_by_role("button", name="reactant C12", exact=True)
    reactant.click()
    product.hover()
    expect(reactant).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Mask reactant C12").click()
    expect(page).to_have_url(re.compile("am-masked=12"), timeout=60_000)
    again = page.get_by_role("button", name="Show reactant C12 again")
    expect(again).to_be_visible(timeout=60_000)
    expect(reactant).to_have_attribute("data-masked", "")
    reactant.click()  # no longer held
    product.hover()
    expect(product).to_have_attribute("aria-pressed", "true")
    expect(reactant).not_to_have_attribute("data-read", "")
    reactant.click()
    again.click()
    expect(page).not_to_have_url(re.compile("am-masked"), timeout=60_000)


def test_a_row_of_a_map_chooses_its_atom(page: Page, app_url: str) -> None:
    """CC(=O)O.CCO>>CCOC(C)=O: the product's oxygen is the 15th token, behind [CLS]."""
    page.goto(f"{app_url}/atom-mapping?am-reaction=esterification&open-all=true")
    oxygen, stage = page.get_by_role("button", name="product O3", exact=True), page.locator("[data-piece=stage]").first
    expect(oxygen).to_have_attribute("aria-pressed", "false")
    stage.focus()
    for _ in range(15 + 1):  # the first press shows the first row
        page.keyboard.press("ArrowDown")
    expect(oxygen).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".token[data-chosen]")).to_have_text("O")
    page.keyboard.press("ArrowDown")
    expect(oxygen).to_have_attribute("aria-pressed", "false")
