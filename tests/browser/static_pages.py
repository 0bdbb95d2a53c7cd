"""What every page of the static site must be: as narrow as a phone, and usable by everyone in light and dark."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.accessibility import ALL, AXE

_FITS = """async () => {
  const fits = () => document.documentElement.scrollWidth <= innerWidth;
  for (let i = 0; i < 200 && !fits(); i += 1) await new Promise((resolve) => setTimeout(resolve, 50));
  return fits();
}"""  # the pages' Content-Security-Policy forbids the strings that wait_for_function compiles


def check_it_fits(page: Page) -> None:
    """Nothing is wider than a window, a phone's included."""
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate(_FITS), width


def check_everyone_can_use_it(page: Page) -> None:
    """axe finds nothing in either scheme."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate(ALL, None)["violations"]
        assert not [(scheme, rule["id"], [node["target"] for node in rule["nodes"]]) for rule in found]
