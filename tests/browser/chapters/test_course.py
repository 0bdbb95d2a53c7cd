"""Lessons tried as a class would, and questions asked again."""

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page_checks import expect_rest
from tests.source_files import ROOT, script
from ui.chapter.contents import all_chapters
from ui.chapter.exercises import NUMBERS

DESK, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
LESSON = "lesson-6"  # with a presented figure and question, an open section and a head off

# What fills the window: its key and those it is part of, and whether its middle is seen.
_PRESENTED = """() => {
  const shown = document.querySelector('[data-presented=figure], [data-presented=question]');
  if (!shown) return null;
  const { left, top, width, height } = shown.getBoundingClientRect();
  const found = document.elementFromPoint(left + width / 2, top + Math.min(height, innerHeight) / 2);
  let keys = shown.className;
  for (let node = shown.parentElement; node; node = node.parentElement) keys += ` ${node.className}`;
  return { keys, seen: Boolean(found && shown.contains(found)), width, text: shown.innerText };
}"""


@pytest.fixture(scope="module")
def pack(app_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make course` writes for this server."""
    folder = tmp_path_factory.mktemp("course")
    script(ROOT / "docs" / "teach" / "course.py").build(folder, app_url)
    return folder


def test_links_of_a_lesson_open_what_they_say(page: Page, pack: Path) -> None:
    """From the teacher's page into the lesson, each slide and the vote presented at 1400 px, homework at 390 px.

    Of one lesson, one of each kind: all are opened in tests/pages/test_addresses.py.
    """
    page.set_viewport_size(DESK)
    page.goto((pack / "en" / "index.html").as_uri())
    page.locator(f"a[href='{LESSON}.html']").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lesson")
    address = page.url
    headings = page.locator("h2").all_inner_texts()
    assert len(headings) == 7
    links = page.evaluate(
        """() => [...document.querySelectorAll('a[href^="http"]')].map((link) => {
          let above = link.closest('ol, p, ul');
          while (above && above.tagName !== 'H2') above = above.previousElementSibling;
          return [above?.innerText, link.href, link.closest('li, p').innerText];
        })"""
    )
    assert len(links) >= 6
    kinds = ("present=figure", "present=exercise", "-without=", "-open-play=")
    for heading, href, text in (next(each for each in links if kind in each[1]) for kind in kinds):
        page.set_viewport_size(PHONE if heading == headings[-1] else DESK)
        if page.url != address:
            page.goto(address)
        page.locator(f"a[href='{href}']").first.click()
        expect_what_it_says(page, href, text)


def expect_what_it_says(page: Page, href: str, text: str) -> None:
    """Its figure or question fills the window, its section is open; nothing is refused, too wide or failed."""
    params = dict(parse_qsl(urlsplit(href).query))
    begin = params.get("present")
    if begin is not None:
        expect_presented(page, begin)
        expect_rest(page)
        expect_presented(page, begin)  # what is drawn later does not take its place
        assert not begin.startswith("exercise-") or page.evaluate(_PRESENTED)["text"].strip(), text
    else:
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    for name in params:
        if section := re.fullmatch(r"\w+-open-(.+)", name):
            expect(page.locator(f".st-key-section-{section[1]} details").first).to_have_attribute("open", "")
        if name.endswith("-without"):
            expect(page.locator(".st-key-translation-without")).to_be_visible()
    expect_rest(page)
    assert page.get_by_test_id("stException").count() == 0, text
    assert "The address" not in page.get_by_test_id("stMain").inner_text(), text


def expect_presented(page: Page, name: str) -> None:
    """The figure, question or part of this name, or any for "1", fills the window."""
    page.wait_for_function(
        f"(wanted) => {{ const it = ({_PRESENTED})();"
        " return it?.seen && it.width > 300 && it.keys.split(' ').some((key) => new RegExp(wanted).test(key)) }",
        arg="." if name == "1" else f"-{re.escape(name)}$",
    )


DAY = 24 * 60 * 60 * 1000
IDEAS = len(all_chapters()[1:]) * len(NUMBERS)


def test_answers_are_known_until_they_are_due_and_stay_in_the_browser(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/multi-head?mh-open-review=true")
    questions = page.locator(".st-key-section-review fieldset")
    expect(questions).to_have_count(2)
    questions.nth(0).get_by_role("button", name="The number of attention weights").click()
    expect(questions.nth(0).get_by_role("status")).to_have_text("Right.")
    questions.nth(1).get_by_role("button", name="W_o stays").click()
    expect(questions.nth(1).get_by_role("status")).to_have_text(
        "Not quite. Fixed output matrix. Each head's part moves along. See the figure"
    )
    expect(questions.nth(1).get_by_role("status").locator("b")).to_have_text("Fixed output matrix.")
    questions.nth(1).get_by_role("link", name="See the figure").click()
    expect(page.locator(".st-key-card-main")).to_be_in_viewport()

    page.goto(f"{app_url}/review")
    row = page.locator("details", has_text="Multi-head attention")
    expect(row.locator(".chip").nth(0)).to_have_text(re.compile("^Cost of heads: until "))
    expect(row.locator(".chip").nth(1)).to_have_text("Order of heads: due")
    expect(page.get_by_text(f"1 of {IDEAS} ideas known, 1 due.")).to_be_visible()

    # A second right answer on the same day is no second day; four days later the question is due.
    page.evaluate(
        """day => {
            const answers = JSON.parse(localStorage.getItem("atlas.review"));
            answers["multi-head.1"].at -= 4 * day;
            localStorage.setItem("atlas.review", JSON.stringify(answers));
        }""",
        DAY,
    )
    page.reload()
    expect(page.get_by_text(f"0 of {IDEAS} ideas known, 2 due.")).to_be_visible()
    page.get_by_role("button", name="Only what is due").click()
    expect(page.locator("details:visible")).to_have_count(1)
    row.get_by_role("button", name="The number of attention weights").click()
    expect(page.get_by_text(f"1 of {IDEAS} ideas known, 1 due.")).to_be_visible()
    streak = page.evaluate("JSON.parse(localStorage.getItem('atlas.review'))['multi-head.1'].streak")
    assert streak == 2

    page.get_by_role("button", name="Forget my answers").click()
    expect(page.get_by_text(f"0 of {IDEAS} ideas known, 0 due.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text(f"1 of {IDEAS} ideas known, 1 due.")).to_be_visible()
    page.evaluate("""localStorage.setItem("atlas.review", '{"multi-head.1": {"streak": "x"}, "nonsense": 3}')""")
    page.reload()  # what others have stored breaks nothing
    expect(page.get_by_text(f"0 of {IDEAS} ideas known, 0 due.")).to_be_visible()


def test_a_reply_links_the_first_figure_of_a_chapter_without_a_main_one(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/queries-keys-values?qkv-open-review=true")
    page.get_by_role("button", name="The value of the best key").click()
    reply = page.get_by_role("status").filter(has_text="Hard choice.")
    reply.get_by_role("link", name="See the figure").click()
    expect(page.locator(".st-key-card-lookup")).to_be_in_viewport()
    expect(reply).to_be_attached()  # the page was not loaded again


def test_questions_on_an_earlier_chapter_are_at_the_start(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/bahdanau")
    page.get_by_role("button", name="Before you start").click()
    expect(page.get_by_text("Two questions on Queries, keys and values")).to_be_visible()
    page.get_by_role("button", name="A weighted sum of all values").click()
    expect(page.get_by_role("status").filter(has_text="Right.")).to_be_visible()


def test_the_reason_waits_for_the_readers_own_sentence(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/multi-head?mh-guess-other=3")
    exercise = page.locator(".st-key-exercise-other")
    box = exercise.get_by_label("Why? Write one sentence.")
    reason = page.locator("[class*=st-key-reason-of-]")
    expect(box).to_be_visible()
    expect(reason).to_be_hidden()
    box.fill("Half as wide, twice as many.")
    exercise.get_by_role("button", name="Compare with ours").click()
    expect(reason).to_be_visible()
    page.reload()
    expect(box).to_have_value("Half as wide, twice as many.")
    expect(reason).to_be_visible()
    assert "Half" not in page.url


@pytest.mark.parametrize(
    ("chapter", "steps", "verdict", "shown"),
    [
        ("multi-head", 2, "Yes. Head 8", "mh-text=Tom"),  # a thumbnail of the attention view
        ("linear-attention", 1, "Not quite.", "la-time=7"),  # a place in a plotly figure
        ("sinusoidal-encoding", 1, "Yes. Position 20", "se-guess"),  # a row of a heatmap
    ],
)
def test_an_answer_is_chosen_on_the_figure_by_keys(
    page: Page, app_url: str, chapter: str, steps: int, verdict: str, shown: str
) -> None:
    page.set_viewport_size(PHONE if chapter == "linear-attention" else DESK)
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{app_url}/{chapter}")
    start = page.get_by_role("button", name="Choose on the figure")
    start.click()
    marks = page.locator(".marks [role=radio]")
    expect(marks.first).to_be_focused()
    for mark in marks.all():
        expect(mark).to_be_in_viewport(ratio=1)
    for _ in range(steps):
        page.keyboard.press("ArrowRight")
    expect(marks.nth(steps)).to_be_focused()
    page.keyboard.press("Enter")
    note = page.locator(".marks .note")
    expect(note).to_contain_text(verdict)
    expect(note).to_be_in_viewport()
    expect(page.get_by_role("radio", checked=True).first).to_be_attached()
    assert shown in page.url
    ring = page.locator(".marks .ring")
    place, right = ring.bounding_box(), marks.nth(1 if chapter == "sinusoidal-encoding" else 2).bounding_box()
    assert place == pytest.approx(right, abs=2)
    start.click()
    expect(ring).to_have_count(0)
