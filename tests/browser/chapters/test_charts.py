"""Charts in a real browser: drawn when someone may see them, changed in place, taken along, printed."""

import io
import re
from pathlib import Path

import cairosvg
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.browser.page_checks import box_of
from ui.text.words import load_words

PAGE = "relative-projection"
# Without what several chapters share, and what is drawn once the formula is broken.
CHARTS = load_words(PAGE).group("alt").keys() - load_words("shared").group("alt").keys() - {"mirrored"}
DRAWN = "[data-drawn]"
RESIDUAL = b'relative-projection-residual"'  # what this chart is called
AT_REST = "[data-testid=stApp][data-test-script-state=notRunning]"
# For each side that has to grow, plotly draws the whole chart again.
MARGINS_SUFFICE = (
    "({_fullLayout: {margin, _size}}) => ['l', 'r', 't', 'b'].every((side) => _size[side] <= margin[side] + 1)"
)
MOUNT = Path(__file__).resolve().parents[3] / "assets" / "components" / "shared" / "mount.js"


def open_page(page: Page, app_url: str) -> None:
    """The page with the charts near the window drawn."""
    page.goto(f"{app_url}/{PAGE}?open-all=true")
    expect(page.locator(DRAWN).first).to_be_visible()
    expect(page.locator(AT_REST)).to_be_attached()
    assert page.locator(".js-plotly-plot").first.evaluate(MARGINS_SUFFICE)


def rotation(page: Page) -> Locator:
    return page.locator(".st-key-figure-rotation")


def drawn(page: Page, name: str) -> Locator:
    """The chart of this name, if it is drawn."""
    return page.locator(f".st-key-figure-{name} {DRAWN}")


def move_offset(page: Page) -> None:
    offset = page.locator('input[aria-label="Offset δ"]')
    offset.focus()
    offset.press("ArrowRight")
    expect(rotation(page).get_by_text("rotation: 61.1°")).to_be_visible()  # 6 times 0.1778 rad


def button(page: Page, name: str) -> Locator:
    """A button over the first chart; they show while the pointer is there."""
    rotation(page).hover()
    return rotation(page).get_by_role("button", name=name)


@pytest.mark.parametrize(
    "chapter", ["bahdanau", "learning", "linear-attention"]
)  # slanted names, named maps, a colour bar
def test_a_first_chart_is_drawn_once(page: Page, app_url: str, chapter: str) -> None:
    page.goto(f"{app_url}/{chapter}")
    expect(page.locator(DRAWN).first).to_be_visible()
    assert page.locator(".js-plotly-plot").first.evaluate(MARGINS_SUFFICE)


def test_heads_are_played_while_they_form_and_break_it_stays_where_it_is(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/learning?l-break=untrained")
    row = page.locator(".st-key-after-main")
    expect(row).to_contain_text(load_words("learning", "en")("break.untrained"))
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("slider", name="Updates")).to_have_value(re.compile("[1-9]"))
    expect(row.locator(".st-key-l-break")).to_be_visible()
    expect(page.locator(".stAlert")).to_have_count(1)


def test_a_chart_far_below_sends_nothing_until_it_is_scrolled_to(page: Page, app_url: str) -> None:
    sent: list[bytes] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sent.append(bytes(frame))))
    open_page(page, app_url)
    far = page.locator('[class*="st-key-part-relative-projection-residuals"]')
    below = page.get_by_text("The largest entry of").first
    claims = page.locator('[class*="st-key-part-relative-projection-claims-proof"]')
    assert not any(RESIDUAL in frame for frame in sent)
    expect(below).to_be_attached()  # words are there
    expect(claims).to_contain_text("off by …")
    assert box_of(far)["height"] == 440
    below.scroll_into_view_if_needed()
    expect(far.get_by_role("figure")).to_have_attribute("data-drawn", "true")
    expect(claims).not_to_contain_text("…")
    assert any(RESIDUAL in frame for frame in sent)


def test_a_chart_is_changed_in_place_drawn_in_the_colours_of_a_theme_taken_along_enlarged_and_printed(
    page: Page, app_url: str
) -> None:
    page.emulate_media(color_scheme="light")
    open_page(page, app_url)
    moves_a_curve_in_the_same_drawing(page)
    is_drawn_in_the_colours_of_a_theme(page)
    is_as_wide_as_its_place_and_as_a_full_screen(page)
    assert any(not drawn(page, name).count() for name in CHARTS)
    page.emulate_media(media="print")
    for name in CHARTS:
        expect(drawn(page, name)).to_be_attached()


def moves_a_curve_in_the_same_drawing(page: Page) -> None:
    """One far below is new when it is seen."""
    expect(rotation(page).locator(DRAWN)).to_be_visible()
    place = page.locator('[class*="st-key-part-relative-projection-residuals"]')
    curves = place.locator(".scatterlayer")
    place.scroll_into_view_if_needed()
    expect(curves).to_be_attached()
    drawn = curves.inner_html()
    page.evaluate(
        """() => {
            window.gone = 0;
            window.svg = document.querySelector(".st-key-figure-rotation .main-svg");
            const counting = new MutationObserver((changes) => {
                for (const { removedNodes } of changes)
                    for (const node of removedNodes) window.gone += node.contains?.(window.svg) ? 1 : 0;
            });
            counting.observe(document.body, { subtree: true, childList: true });
        }"""
    )
    move_offset(page)  # scrolls up
    assert page.evaluate("document.querySelector('.st-key-figure-rotation .main-svg') === window.svg")
    assert page.evaluate("window.gone") == 0
    place.scroll_into_view_if_needed()
    page.wait_for_function(
        "([place, drawn]) => ![undefined, drawn].includes(place.querySelector('.scatterlayer')?.innerHTML)",
        arg=[place.element_handle(), drawn],
        polling=100,
    )


def test_a_call_that_is_answered_late_does_not_end_the_view_of_the_next(page: Page) -> None:
    ended = page.evaluate(
        """async (source) => {
            const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
            const { mountView } = await import(address);
            const ended = [];
            const [views, parentElement] = [new WeakMap(), document.body];
            const create = (parent) => ({ parts: { root: parent.appendChild(document.createElement("p")) } });
            const mount = () => mountView(views, { parentElement }, create, (view) => ended.push(view));
            const [first, second] = [mount(), mount()];
            first.unmount();
            const early = ended.length;
            second.unmount();
            second.unmount();
            return { same: first.view === second.view, early, late: ended.length };
        }""",
        MOUNT.read_text(encoding="utf-8"),
    )
    assert ended == {"same": True, "early": 0, "late": 1}


def is_drawn_in_the_colours_of_a_theme(page: Page) -> None:
    """What is taken along is dark on white."""
    rotation(page).scroll_into_view_if_needed()
    title = rotation(page).locator(".xtitle")
    expect(title).to_have_css("fill", "rgb(29, 33, 37)")
    hand = rotation(page).locator(".annotation-text").first
    expect(hand).to_have_css("fill", "rgb(0, 114, 178)")
    page.emulate_media(color_scheme="dark")
    expect(title).to_have_css("fill", "rgb(231, 229, 223)")
    expect(hand).to_have_css("fill", "rgb(86, 180, 233)")  # the queries' blue, as bright as a dark page needs it
    with page.expect_download() as download:
        button(page, "Save as a picture").click()
    assert download.value.suggested_filename == "relative-projection-rotation.svg"
    text = download.value.path().read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert "dimension 6: sine" in text
    picture = Image.open(io.BytesIO(cairosvg.svg2png(text.encode()))).convert("RGB")
    colours = {colour for _, colour in picture.getcolors(1 << 24)}
    assert picture.getpixel((1, 1)) == (255, 255, 255)
    assert {(0, 114, 178), (213, 94, 0)} <= colours  # queries and keys, as on paper


def expect_to_fill_its_place(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    place = rotation(page).get_by_role("figure")
    drawing = rotation(page).locator(".main-svg").first
    expect(drawing).to_have_attribute("width", str(place.evaluate("place => place.clientWidth")))
    expect(drawing).to_have_attribute("height", str(place.evaluate("place => place.clientHeight")))
    height = place.evaluate("place => place.clientHeight")
    assert height == (500 if width > 500 else box_of(place)["width"] + 70) == box_of(rotation(page))["height"]
    expect(rotation(page)).to_have_attribute("height", "500px")  # reserved until the chart's script was there


def is_as_wide_as_its_place_and_as_a_full_screen(page: Page) -> None:
    expect_to_fill_its_place(page, 390)
    expect_to_fill_its_place(page, 1400)
    page.set_viewport_size({"width": 1400, "height": 1000})
    drawing = rotation(page).locator(".main-svg").first
    small = box_of(drawing)
    button(page, "Full screen").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(drawing).to_have_attribute("width", "1368")
    expect(drawing).to_have_attribute("height", "968")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(drawing).to_have_attribute("width", str(round(small["width"])))
    expect(rotation(page).get_by_role("button", name="Full screen")).to_be_focused()
