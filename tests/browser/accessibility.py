"""What axe-core finds wrong with a page, light and dark, beyond what it finds with an empty one of Streamlit's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, expect

from tests.browser.page_checks import expect_rest

AXE = Path(__file__).parent / "vendor" / "axe" / "axe.min.js"
Scheme = Literal["light", "dark"]
ALL: dict[str, object] = {}
OF_COLOURS: dict[str, object] = {"runOnly": ["color-contrast"]}
# Each element that breaks a rule: [rule, where it is, its beginning].
RUN = """async ([part, rules]) => {
  const options = { ...rules, resultTypes: ["violations"], elementRef: true };
  const { violations } = await axe.run(part ?? document, options);
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, element }) => [id, target, element.outerHTML.slice(0, 200)]));
}"""
COLOURS_THERE = "() => document.getAnimations().every((each) => !(each instanceof CSSTransition))"

# Streamlit's table of contents, where chapters stand in sections: it puts the entries of each into a div in one ul.
STREAMLITS = {"list": "stSidebarNavItems", "listitem": "stSidebarNavItems"}


def found_in(page: Page, part: str | None = None, schemes: tuple[Scheme, ...] = ("light", "dark")) -> list[str]:
    """Every rule that the page breaks, with the element that breaks it: of colours in each scheme, of all else once.

    The page stays as it was turned last, and begins so at the next call: to draw it in other colours takes long.

    Args:
        part: a selector of what is looked at; all of it unless given.
    """
    if page.evaluate("() => !globalThis.axe"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    now = "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    found: list[str] = []
    for number, scheme in enumerate(sorted(schemes, key=lambda each: each != now)):
        _turn(page, scheme)
        found += [f"{scheme}: {each}" for each in _found(page, OF_COLOURS if number else ALL, part)]
    return found


def expect_no_more_than(empty: list[str], page: Page, *schemes: Scheme) -> None:
    """The page breaks no rule, in both schemes or in these, but those that an empty page breaks."""
    known = set(map(_rule, empty))
    more = [each for each in found_in(page, schemes=schemes or ("light", "dark")) if _rule(each) not in known]
    assert not more, "\n".join(more)


def _rule(found: str) -> str:
    return found.partition(": ")[2].partition(" at ")[0]


def _found(page: Page, rules: dict[str, object], part: str | None) -> Iterator[str]:
    for rule, target, beginning in page.evaluate(RUN, [part, rules]):
        if not _is_streamlits(page, rule, target):
            yield f"{rule} at {target}: {beginning}"


def _is_streamlits(page: Page, rule: str, target: list[str]) -> bool:
    return rule in STREAMLITS and page.locator(target[0]).evaluate(
        "(node, name) => node.closest(`[data-testid=${name}]`) !== null", STREAMLITS[rule]
    )


def _turn(page: Page, scheme: Scheme) -> None:
    """The page as who prefers light, or dark, sees it."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(f"getComputedStyle(document.querySelector('.stApp')).colorScheme === '{scheme}'")
    expect_rest(page)
    page.wait_for_function(COLOURS_THERE)  # some change bit by bit


_FITS = """async () => {
  const fits = () => document.documentElement.scrollWidth <= innerWidth;
  for (let i = 0; i < 200 && !fits(); i += 1) await new Promise((resolve) => setTimeout(resolve, 50));
  return fits();
}"""  # the pages' Content-Security-Policy forbids the strings that wait_for_function compiles
_UNTIL_COLOURS_ARE_THERE = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const roots = [document, ...[...document.querySelectorAll("*")].flatMap((node) => node.shadowRoot ?? [])];
  const changes = (root) => root.getAnimations().some((each) => each instanceof CSSTransition);
  for (let i = 0; i < 3 || roots.some(changes); i += 1) await frame();
}"""


def check_it_fits(page: Page) -> None:
    """Nothing is wider than a window, a phone's included."""
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate(_FITS), width


def check_everyone_can_use_it(page: Page) -> None:
    """axe finds nothing in either scheme."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate(_UNTIL_COLOURS_ARE_THERE)
        found = [(scheme, rule, target) for rule, target, _ in page.evaluate(RUN, [None, ALL])]
        assert not found, found


def keep_offline(page: Page) -> None:
    """Wait until the site's pages of this page's language are there without a network."""
    assert page.evaluate("async () => (await import(new URL('../page.js', location))).keepSite()")


def check_first_visit(page: Page, sent: list[int]) -> None:
    """The page works offline; its model, the runtime and the small files of its language are together below 12 MB."""
    expect(page.get_by_role("status")).to_contain_text("works offline")
    assert sum(sent) < 12e6, f"{sum(sent) / 1e6:.1f} MB were sent"
