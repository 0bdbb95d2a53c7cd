"""What every page of the static site must be: as narrow as a phone, and usable by everyone in light and dark."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from benchmarks.static_site import wait_until_ready
from tests.browser.accessibility import ALL, AXE, RUN

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


def check_first_visit(page: Page, sent: list[int]) -> None:
    """The page works offline; its model, the runtime and the small files of all pages are together below 20 MB."""
    expect(page.get_by_role("status")).to_contain_text("works offline")
    assert sum(sent) < 20e6, f"{sum(sent) / 1e6:.1f} MB were sent"


def check_every_language(page: Page, site: str, name: str) -> None:
    """A page fits in each language, and everyone can use the last one."""
    for language in ("en", "pt-BR", "zh-TW"):
        page.goto(f"{site}{language}/{name}.html")
        wait_until_ready(page)
        check_it_fits(page)
    check_everyone_can_use_it(page)
