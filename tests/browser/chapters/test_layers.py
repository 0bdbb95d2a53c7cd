"""Journeys through chapters of layers and models: keys and values, heads, the decoder, learning, architectures."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page_checks import box_of, chart, expect_rest
from viz_core.lessons.bahdanau import decoder_steps
from viz_core.pretrained import Translation, Translator, load


@pytest.fixture(scope="module")
def translator() -> Translator:
    return load("bahdanau-en-fr")


@pytest.fixture(scope="module")
def result(translator: Translator) -> Translation:
    return translator.translate("Where did you buy this book?")


def test_the_steps_by_keys_and_word_by_word(
    page: Page, app_url: str, translator: Translator, result: Translation
) -> None:
    steps = decoder_steps(translator, result)
    page.goto(f"{app_url}/bahdanau?b-text=Where+did+you+buy+this+book%3F")
    page.locator(".st-key-b-step").get_by_role("slider").press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    word = result.source_tokens[int(steps.weights[3].argmax())]
    expect(page.get_by_text(f"the decoder attends most to {word}, {steps.weights[3].max():.2f}")).to_be_visible()
    page.wait_for_url("**b-step=4*")

    page.get_by_role("button", name="Next word").click()
    expect(page.get_by_text(f"Before {result.target_tokens[4]} the decoder")).to_be_visible()
    page.wait_for_url("**b-step=5*")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{app_url}/scoring-functions?sf-asks=9")  # else out of sight in its row
    expect(page.locator(".st-key-sf-asks [aria-checked=true]")).to_be_in_viewport(ratio=1)


OWN = "learning?l-source=Train+one+now&l-steps=1600&l-width=32&l-longest=5"


def test_train_stop_and_look_back(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{OWN}")
    page.get_by_role("button", name="Train from the start").click()
    expect(page.get_by_text(re.compile(r"seed 0, after [1-9]\d* updates"))).to_be_visible()  # a snapshot every 40
    page.locator(".st-key-l-train-stop button").click()
    expect(page.get_by_text(re.compile(r"Stopped after \d+ of 1600 updates"))).to_be_visible()
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()
    label, line = page.locator("[data-part=tabs]"), page.locator(".st-key-l-step")
    at_last = label.text_content()
    line.get_by_role("slider").press("Home")
    expect(label).to_have_text("After 0 updates")
    expect(page.get_by_text("seed 0, after 0 updates")).to_be_visible()
    expect(page).to_have_url(re.compile(r"l-step=0\b"))
    expect(page.locator("[data-part=printName]")).to_have_text(re.compile(r"Layer \d, head \d"))
    expect(page.locator("[data-part=prints]")).to_contain_text("entropy")
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    line.get_by_role("slider").press("End")
    expect(label).to_have_text(at_last or "")


def test_pick_two_tokens_and_read_the_paths(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/scoring-functions")  # left while it waits to send what is below its picture
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="CNN, RNN or attention", exact=True).click()
    page.get_by_text("All five layers, and their paths").click()
    expect(page.get_by_text("Path from The to bed")).to_be_visible()
    words = page.get_by_role("combobox", name="To token")
    words.scroll_into_view_if_needed()
    expect_rest(page)  # a list closes when the page moves
    words.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Path from The to my")).to_be_visible()
    expect(page).to_have_url(re.compile(r"a-to=7\b"))
    network = chart(page, "network-convolution").locator(".nsewdrag").first
    box = box_of(network)
    page.mouse.click(box["x"] + box["width"] * 2.6 / 8.2, box["y"] + box["height"] - 8)  # the third token
    expect(page).to_have_url(re.compile(r"a-from=3\b"))
    expect(page.get_by_text("Path from cat to my")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="Convolution, contiguous (k = 3)")
    expect(row.get_by_role("cell").last).to_have_text("2")


ROW = 35  # pixels of a row of Streamlit's table, its head included


def open_names(page: Page, app_url: str) -> Locator:
    """The table of names, to edit, and the section that looks them up in other ways."""
    page.goto(f"{app_url}/queries-keys-values?qkv-open-ways=true")
    page.get_by_text("Edit the names").click()
    card = page.locator(".st-key-section-ways")
    expect(answer(card, "Li → Mu")).to_be_visible()
    return card


def in_address(page: Page, name: str) -> object:
    found = parse_qs(urlsplit(page.url).query).get(name)
    return json.loads(found[0]) if found else None


def type_into_cell(page: Page, row: int, side: float, text: str, is_new: bool = False) -> None:
    """Write over a cell: row from 1, `side` from left to right as a fraction of the table's width.

    A click on the blank row below the last one makes a new row and opens its cell at once.
    """
    grid = page.locator(".dvn-scroller").first  # lies over the canvas and takes the clicks
    box = box_of(grid)
    grid.click(position={"x": side * box["width"], "y": (row + 0.5) * ROW})
    if not is_new:
        page.keyboard.press("Enter")
    editor = page.locator("textarea.gdg-input")
    editor.fill(text)
    editor.press("Enter")


def answer(where: Page | Locator, text: str) -> Locator:
    """The sentence under a panel, not the label in its figure that says the same."""
    return where.get_by_role("paragraph").filter(has_text=re.compile(f"^{text}$"))


def test_edit_the_table_go_back_ask_it_and_open_its_link_again(page: Page, app_url: str) -> None:
    card = open_names(page, app_url)
    type_into_cell(page, 3, 0.8, "Muriel")
    expect(answer(card, "Li → Muriel")).to_be_visible()
    page.wait_for_url(re.compile("qkv-names="))
    page.go_back()
    expect(answer(card, "Li → Mu")).to_be_visible()
    assert in_address(page, "qkv-names") is None
    expect_rest(page)
    type_into_cell(page, 3, 0.8, "Muriel")
    expect(answer(card, "Li → Muriel")).to_be_visible()
    type_into_cell(page, 7, 0.3, "Li", is_new=True)
    expect(page.get_by_text("The key Li is in the table 2 times.")).to_be_visible()
    type_into_cell(page, 7, 0.8, "Fei-Fei")
    expect(answer(card, "Li → Fei-Fei")).to_be_visible()
    page.wait_for_url(re.compile("qkv-names="))
    rows = in_address(page, "qkv-names")
    assert isinstance(rows, list)
    assert (rows[2], rows[6]) == (["Li", "Muriel"], ["Li", "Fei-Fei"])

    link = page.url
    other = page.context.new_page()  # someone else opens the link
    other.goto(link)
    expect(answer(other.locator(".st-key-section-ways"), "Li → Fei-Fei")).to_be_visible(timeout=60_000)
    other.close()

    query = page.locator('input[aria-label="Query"]')  # what was edited stays while other things change
    for name, value in (("Zhang", "Aston"), ("Li", "Muriel")):
        query.fill(name)
        query.press("Enter")
        expect(answer(card, f"{name} → {value}")).to_be_visible()
    expect_rest(page)


def test_an_atom_marks_its_keys_and_is_pinned_and_masked(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/atom-mapping")
    say = page.locator(".places .say")
    expect(say).to_have_text(re.compile(r"^Product C6 attends to reactant C12 \(\d+%\)\. The strongest .* is right\.$"))
    names = ("product C6", "reactant C12")
    product, reactant = (page.get_by_role("button", name=name, exact=True) for name in names)
    expect(reactant.locator(".halo")).to_have_css("fill", "rgb(163, 75, 130)")  # the weights' purple
    expect(product.locator(".ring")).to_have_css("stroke", "rgb(0, 114, 178)")  # the queries' blue
    product.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="product C7", exact=True)).to_be_focused()
    expect(say).to_have_text(re.compile(r"^Product C7 attends to reactant .* Symmetry makes 2 atoms equivalent\.$"))
    page.locator(".tokens .placed").first.hover()
    expect(say).to_have_text(re.compile(r"^Reactant C1 is attended to by product C1 \(\d+%\)"))
    reactant.click()
    product.hover()
    expect(reactant).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Mask reactant C12").click()
    expect(page).to_have_url(re.compile("am-masked=12"), timeout=60_000)
    expect(reactant).to_have_attribute("data-masked", "")
    page.get_by_role("button", name="Show reactant C12 again").click()
    expect(page).not_to_have_url(re.compile("am-masked"), timeout=60_000)
