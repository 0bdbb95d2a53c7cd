"""Lessons tried as a class would: every link of every lesson opens what the lesson says, homework on a phone."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page_checks import expect_rest
from tests.source_files import ROOT, script

DESK, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
LESSONS = sorted(path.stem for path in (ROOT / "docs" / "teach" / "en").glob("lesson-*.md"))

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


@pytest.mark.parametrize("lesson", LESSONS[::3])
def test_every_link_of_a_lesson_opens_what_it_says(page: Page, pack: Path, lesson: str) -> None:
    """From the teacher's page into the lesson, each slide and the vote presented at 1400 px, homework at 390 px.

    A third of them: the links of all are opened in tests/pages/test_addresses.py.
    """
    page.set_viewport_size(DESK)
    page.goto((pack / "en" / "index.html").as_uri())
    page.locator(f"a[href='{lesson}.html']").first.click()
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
    for heading, href, text in links:
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
