"""Nothing a stranger writes is obeyed by another browser or by the server.

Script in addresses, sentences and file names, and uploads sent again.
"""

import os
import re
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from benchmarks.serving import Server
from tests.attacks.over_http import FOREIGN, FORM, multipart, send_request
from tests.viz_core.images.hostile_pictures import GOOD
from ui.chapter.contents import all_chapters
from ui.text.words import ENGLISH, load_words
from ui.widgets.controls import Controls

SCRIPT = '"><img src=x onerror=pwned=1><script>pwned=1</script>'
MANY = "ATTACK_CASES" in os.environ  # `make attacks`; each chapter is asked for the same without a browser, too
CHAPTERS = sorted(all_chapters()) if MANY else ("position-embeddings", "queries-keys-values", "transformer")
# Script, numbers beyond all limits, brackets, invisible and turned-round signs.
VALUES = ("-1e999", "[" * 4000, "\u202e\u200b\ufeff\x00\U0001f600") if MANY else ()
ADDRESSES = [(chapter, SCRIPT) for chapter in CHAPTERS] + [("transformer", value) for value in VALUES]
SLOW = 180_000  # milliseconds; a busy machine is not a failure


def settled(page: Page) -> None:
    """The script has run to its end, and nothing of what came in was obeyed."""
    expect(page.get_by_role("heading", level=1).first).to_be_visible(timeout=SLOW)
    expect(page.locator('[data-test-script-state="running"]')).to_have_count(0, timeout=SLOW)
    assert page.evaluate("window.pwned") is None
    assert page.locator("img[src=x]").count() == 0
    expect(page.get_by_text("Traceback")).to_have_count(0)


@pytest.mark.attack("addresses")
@pytest.mark.parametrize(("chapter", "value"), ADDRESSES)
def test_every_parameter_of_an_address(chapter: str, value: str, page: Page, server: Server) -> None:
    words = load_words(chapter, ENGLISH)
    names = [*map(Controls(words).key, words.front.get("controls", {})), "head", "pin", "look"]
    share = max(1, 6000 // len(names))  # longer addresses are refused before they arrive
    query = urlencode(dict.fromkeys(names, value[:share]))
    page.goto(f"{server.url}/{'' if chapter == 'home' else chapter}?{query}&{SCRIPT}")
    settled(page)


@pytest.mark.attack("texts")
def test_script_in_a_sentence_to_translate(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/transformer")
    box = page.get_by_role("textbox", name="An English sentence")
    box.fill(f"I lost {SCRIPT} my bag.")
    box.press("Enter")
    expect(page.get_by_role("application").first).to_be_visible(timeout=SLOW)
    settled(page)


def upload(page: Page, url: str, content: bytes, name: str) -> None:
    page.goto(f"{url}/vision-transformer?vt-source=Upload")
    expect(page.locator("input[type=file]")).to_be_attached(timeout=SLOW)
    page.locator("input[type=file]").set_input_files([{"name": name, "mimeType": "image/png", "buffer": content}])


@pytest.mark.attack("uploads")
def test_a_picture_whose_name_is_a_script_and_a_file_of_12_mb(page: Page, server: Server) -> None:
    upload(page, server.url, GOOD["one pixel"][0], f"{SCRIPT.replace('/', '')}.png")
    expect(page.get_by_role("application").first).to_be_visible(timeout=SLOW)
    settled(page)
    upload(page, server.url, b"\0" * (10 * 2**20 + 1), "large.png")
    expect(page.get_by_text(re.compile("File must be .* or smaller"))).to_be_visible(timeout=SLOW)


@pytest.mark.attack("uploads")
def test_a_good_upload_sent_again_with_less_or_with_more(page: Page, server: Server) -> None:
    """The page's own request for an upload, put again with other headers or another body."""
    with page.expect_request(lambda request: request.method == "PUT", timeout=SLOW) as caught:
        upload(page, server.url, GOOD["one pixel"][0], "small.png")
    sent: Request = caught.value
    left_out = ("content-length", "content-type")
    own = {name: value for name, value in sent.all_headers().items() if name[0] != ":" and name not in left_out} | FORM
    without_token = {name: value for name, value in own.items() if name != "x-xsrftoken"}
    # Another site knows neither the cookie nor, so, the token.
    foreign = {name: value for name, value in without_token.items() if name != "cookie"} | {"origin": FOREIGN}
    for headers, size, expected in ((without_token, 1000, 403), (foreign, 1000, 403), (own, 12 * 2**20, 413)):
        status, allowed, body = send_request(server.url, "PUT", urlsplit(sent.url).path, multipart(size), headers)
        assert status == expected, (status, body, headers)
        assert allowed.get("access-control-allow-origin") not in ("*", FOREIGN)
