"""Nothing jumps: what is painted stays where it is while a page loads, in a wide window and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from ui.chapter.contents import all_pages

GOOD = 0.1  # sum of layout-shift scores (web.dev/cls)
AFTERWARDS = 1500  # ms for the parts that are requested once the page is there
WATCH = """
window.shifts = [];
const describe = ({ node }) => (node?.nodeType === 1 ? node : node?.parentElement)?.innerText?.slice(0, 40);
const note = ({ value, sources }) => window.shifts.push([value, sources.map(describe)]);
new PerformanceObserver((list) => list.getEntries().filter((each) => !each.hadRecentInput).forEach(note))
    .observe({ type: "layout-shift", buffered: true });
"""


@pytest.mark.parametrize("name", all_pages())
def test_nothing_jumps_while_a_page_loads(app_url: str, page: Page, name: str) -> None:
    page.add_init_script(WATCH)
    for width, height in ((1400, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{app_url}/{'' if name == all_pages()[0] else name}")
        expect(page.locator("html:not([data-loading])")).to_be_attached()
        page.wait_for_timeout(AFTERWARDS)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        shifts = page.evaluate("window.shifts")
        assert sum(score for score, _ in shifts) <= GOOD, (width, shifts)
