"""What a stranger may try in a browser: script in addresses, sentences and file names, and uploads sent again."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Page, Request, Route, expect

from tests.attacks.over_http import BOUNDARY, FOREIGN, Attack, multipart, send_request
from tests.viz_core.images.hostile_pictures import GOOD
from ui.chapter.contents import all_chapters
from ui.text.words import ENGLISH, load_words
from ui.widgets.controls import Controls

SCRIPT = '"><img src=x onerror=pwned=1><script>pwned=1</script>'
MANY = "ATTACK_CASES" in os.environ  # `make attacks`; each chapter is asked for the same without a browser, too
CHAPTERS = ("position-embeddings", "queries-keys-values", "transformer")
WAYS = {
    "numbers beyond all limits": "-1e999",
    "4,000 brackets": "[" * 4000,
    "invisible and turned-round signs": "\u202e\u200b\ufeff\x00\U0001f600",
}
PICTURE = GOOD["one pixel"][0]
SLOW = 180_000  # milliseconds; a busy machine is not a failure


def attacks() -> Iterator[Attack]:
    """Every try of this file; each runs in a fresh window, at the server's address."""
    for chapter in sorted(all_chapters()) if MANY else CHAPTERS:
        yield Attack("addresses", f"script in every parameter of /{chapter}", _opener(chapter, SCRIPT))
    for way, value in WAYS.items() if MANY else ():
        yield Attack("addresses", f"{way} in every parameter of /transformer", _opener("transformer", value))
    yield Attack("addresses", "a chapter that is none: `/../../etc/passwd?<script>`", _no_chapter)
    yield Attack("texts", "script in a sentence to translate", _sentence)
    yield Attack("uploads", "a picture whose name is a script", _file_name)
    yield Attack("uploads", "a file of 12 MB", _too_large)
    yield Attack("shipped files", "a script that comes cut short", _cut_short)
    yield Attack("uploads", "a good upload sent again, with less or with more", _replays)


def _settled(page: Page) -> None:
    """The script has run to its end, and nothing of what came in was obeyed."""
    expect(page.get_by_role("heading", level=1).first).to_be_visible(timeout=SLOW)
    expect(page.locator('[data-test-script-state="running"]')).to_have_count(0, timeout=SLOW)
    assert page.evaluate("window.pwned") is None
    assert page.locator("img[src=x]").count() == 0
    expect(page.get_by_text("Traceback")).to_have_count(0)


def _opener(chapter: str, value: str) -> Callable[[Page, str], str]:
    words = load_words(chapter, ENGLISH)
    names = [*map(Controls(words).key, words.front.get("controls", {})), "head", "pin", "look"]
    share = max(1, 6000 // len(names))  # longer addresses are refused before they arrive
    query = urlencode(dict.fromkeys(names, value[:share]))

    def run(page: Page, url: str) -> str:
        page.goto(f"{url}/{'' if chapter == 'home' else chapter}?{query}")
        _settled(page)
        return "the page, as if without them"

    return run


def _no_chapter(page: Page, url: str) -> str:
    page.goto(f"{url}/%2e%2e%2f%2e%2e%2fetc/passwd?<script>pwned=1</script>")
    assert "root:x:" not in page.content()
    assert page.evaluate("window.pwned") is None
    return "400" if "400" in page.content() or page.content().count("<") < 10 else "the app's own page"


def _sentence(page: Page, url: str) -> str:
    page.goto(f"{url}/transformer")
    box = page.get_by_role("textbox", name="An English sentence")
    box.fill(f"I lost {SCRIPT} my bag.")
    box.press("Enter")
    expect(page.get_by_role("application").first).to_be_visible(timeout=SLOW)
    _settled(page)
    return "translated, its signs shown as signs"


def _upload(page: Page, url: str, content: bytes, name: str) -> None:
    page.goto(f"{url}/vision-transformer?vt-source=Upload")
    expect(page.locator("input[type=file]")).to_be_attached(timeout=SLOW)
    page.locator("input[type=file]").set_input_files([{"name": name, "mimeType": "image/png", "buffer": content}])


def _file_name(page: Page, url: str) -> str:
    _upload(page, url, PICTURE, f"{SCRIPT.replace('/', '')}.png")
    expect(page.get_by_role("application").first).to_be_visible(timeout=SLOW)
    _settled(page)
    return "classified, its name shown as it is"


def _too_large(page: Page, url: str) -> str:
    _upload(page, url, b"\0" * (10 * 2**20 + 1), "large.png")
    sentence = page.get_by_text(re.compile("File must be .* or smaller"))
    expect(sentence).to_be_visible(timeout=SLOW)
    return f"a sentence: {sentence.inner_text()}"


def _cut_short(page: Page, url: str) -> str:
    def half(route: Route) -> None:
        code = route.fetch().text()
        route.fulfill(body=code[: len(code) // 2], content_type="text/javascript")

    page.route("**/atlas/heatmap-*.js", half)
    page.goto(f"{url}/sinusoidal-encoding")
    sentence = load_words("common", ENGLISH)("no-script")
    expect(page.get_by_text(sentence.split(":")[0]).first).to_be_visible(timeout=SLOW)
    _settled(page)
    return "a sentence where it would draw"


def _replays(page: Page, url: str) -> str:
    """The page's own request for an upload, put again with other headers or another body."""
    with page.expect_request(lambda request: request.method == "PUT", timeout=SLOW) as caught:
        _upload(page, url, PICTURE, "small.png")
    sent: Request = caught.value
    mine = {name: value for name, value in sent.all_headers().items() if not name.startswith(":")}
    mine.pop("content-length", None)
    mine["content-type"] = f"multipart/form-data; boundary={BOUNDARY}"
    tries = {
        "without its token": (_without_token(mine), 1000, 403),
        "from another site": (_from_other_origin(mine), 1000, 403),
        "with 12 MB": (mine, 12 * 2**20, 413),
    }
    for headers, size, expected in tries.values():
        status, allowed, body = send_request(url, "PUT", urlsplit(sent.url).path, multipart(bytes(size)), headers)
        assert status == expected, (status, body, headers)
        assert allowed.get("access-control-allow-origin") not in ("*", FOREIGN)
    return ", ".join(f"{how}: {expected}" for how, (_, _, expected) in tries.items())


def _without_token(sent: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in sent.items() if name != "x-xsrftoken"}


def _from_other_origin(sent: dict[str, str]) -> dict[str, str]:
    """Another site knows neither the cookie nor, so, the token."""
    return {name: value for name, value in _without_token(sent).items() if name != "cookie"} | {"origin": FOREIGN}
