"""The chapter on heads in a real browser: a scan of the reader's own texts is stopped, and goes on."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from ui.text.words import load_words

WORDS = load_words("heads", "en")
SLOW = 180_000
LINES = 200


def test_stop_keeps_what_is_scanned(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/heads?hs-texts=own")
    box = page.get_by_label(WORDS.label("own"), exact=True)
    box.fill("\n".join(f"Tom saw cat {number}." for number in range(LINES)))
    box.press("Control+Enter")
    scan = page.get_by_role("button", name=WORDS("scan.text", count=LINES), exact=True)
    scan.click(timeout=SLOW)
    expect(page.get_by_text(re.compile(rf"^[1-9]\d* of {LINES}$"))).to_be_visible(timeout=SLOW)
    page.locator(".st-key-hs-scan-stop button").click()
    stopped = page.get_by_text(re.compile(rf"^Stopped after \d+ of {LINES}\."))
    expect(stopped).to_be_visible(timeout=SLOW)
    done = int(re.findall(r"\d+", stopped.inner_text())[0])
    assert 0 < done < LINES
    expect(page.locator(".st-key-figure-heads")).to_have_count(0)
    scan.click()
    expect(page.locator(".st-key-figure-heads [data-drawn]")).to_be_visible(timeout=SLOW)
    expect(stopped).to_have_count(0)
