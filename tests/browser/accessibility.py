"""What axe-core finds wrong with a page, light and dark, beyond what it finds with an empty one of Streamlit's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page

from tests.browser.page_checks import expect_rest

AXE = Path(__file__).parent / "vendor" / "axe" / "axe.min.js"
ALL = "(part) => axe.run(part ?? document, { resultTypes: ['violations'] })"
COLOURS_THERE = "() => document.getAnimations().every((each) => !(each instanceof CSSTransition))"
OF_COLOURS = "(part) => axe.run(part ?? document, { resultTypes: ['violations'], runOnly: ['color-contrast'] })"

# Streamlit's table of contents, where chapters stand in sections: it puts the entries of each into a div in one ul.
STREAMLITS = {"list": "stSidebarNavItems", "listitem": "stSidebarNavItems"}


def found_in(page: Page, part: str | None = None) -> list[str]:
    """Every rule that the page breaks, with the element that breaks it: of colours in dark too, of all else once.

    The page stays dark: whoever looks on does so there, and it is not drawn a third time.

    Args:
        part: a selector of what is looked at; all of it unless given.
    """
    _turn(page, "light")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = [f"light: {each}" for each in _found(page, ALL, part)]
    _turn(page, "dark")
    return found + [f"dark: {each}" for each in _found(page, OF_COLOURS, part)]


def expect_no_more_than(empty: list[str], page: Page) -> None:
    """The page breaks no rule but those that an empty page breaks."""
    known = {each.split(" at ")[0] for each in empty}
    more = [each for each in found_in(page) if each.split(" at ")[0] not in known]
    assert not more, "\n".join(more)


def _found(page: Page, run: str, part: str | None) -> Iterator[str]:
    for rule in page.evaluate(run, part)["violations"]:
        for node in rule["nodes"]:
            if not _is_streamlits(page, rule["id"], node["target"]):
                yield f"{rule['id']} at {node['target']}: {node['html'][:200]}"


def _is_streamlits(page: Page, rule: str, target: list[str]) -> bool:
    return rule in STREAMLITS and page.locator(target[0]).evaluate(
        "(node, name) => node.closest(`[data-testid=${name}]`) !== null", STREAMLITS[rule]
    )


def _turn(page: Page, scheme: Literal["light", "dark"]) -> None:
    """The page as who prefers light, or dark, sees it."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(f"getComputedStyle(document.querySelector('.stApp')).colorScheme === '{scheme}'")
    expect_rest(page)
    page.wait_for_function(COLOURS_THERE)  # some change bit by bit
