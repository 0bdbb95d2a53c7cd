"""A server that restarts, as its visitors see it: a sentence of ours, and then the page as it was."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.serving import HOSTED, ROOT, free_port, wait_until_healthy
from ui.text.words import load_words

SLOW = 120_000  # milliseconds; a busy machine is not a failure
STREAMLIT = ("Connection error", "Is Streamlit still running", "Streamlit server is not responding")
SIZES = {"en": (1400, 900), "pt-BR": (390, 844), "zh-TW": (390, 844)}


@contextmanager
def server(folder: Path, port: int, workers: str = "0") -> Iterator[subprocess.Popen[bytes]]:
    """A hosted server at a port of one's own choice, to come back to."""
    options = {"STREAMLIT_SERVER_PORT": str(port), "STREAMLIT_SERVER_ADDRESS": "127.0.0.1", "ATLAS_WORKERS": workers}
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, HOSTED], cwd=ROOT, env=os.environ | options, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}", process, log, "/readyz")
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def opened(browser: Browser, url: str, language: str) -> Page:
    width, height = SIZES[language]
    page = browser.new_context(viewport={"width": width, "height": height}).new_page()
    page.goto(f"{url}/transformer?lang={language}")
    expect(page.get_by_role("application").first).to_be_visible(timeout=SLOW)
    return page


@pytest.mark.attack("disorder")
def test_a_page_whose_server_restarts_says_so_and_comes_back_with_what_was_typed(
    browser: Browser, tmp_path: Path
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with server(tmp_path, port, "1") as first:
        pages = {language: opened(browser, url, language) for language in SIZES}
        typed = pages["en"].get_by_role("textbox").first
        typed.fill("He is calm.")
        typed.press("Enter")
        expect(pages["en"].get_by_role("heading", name="Il est calme")).to_be_visible(timeout=SLOW)
        typed.fill("He is at home, and this was not sent.")
        workers = sorted(psutil.Process(first.pid).children(recursive=True), key=psutil.Process.create_time)
        workers[-1].suspend()  # it is stuck, and ends all the same
        first.terminate()
        first.wait(timeout=60)
        assert psutil.wait_procs(workers, 60)[1] == []
        for language, page in pages.items():
            sentence = load_words("common", language).group("refused")["restarting"]
            expect(page.get_by_role("status").filter(has_text=sentence)).to_be_visible(timeout=SLOW)
        dialog = pages["en"].locator("[role=dialog]")  # Streamlit's, which opens after some tries
        expect(dialog).to_have_count(1, timeout=SLOW)
        expect(dialog).to_be_hidden()
        for words in STREAMLIT:
            expect(pages["en"].get_by_text(words)).to_be_hidden()
    with server(tmp_path, port):
        for page in pages.values():
            expect(page.locator("#server-gone")).to_have_count(0, timeout=SLOW)
            expect(page.get_by_role("application").first).to_be_visible(timeout=SLOW)
        expect(typed).to_have_value("He is at home, and this was not sent.")
        expect(pages["en"].get_by_role("heading", name="Il est calme")).to_be_visible(timeout=SLOW)
        typed.fill("I'm home.")
        typed.press("Enter")
        expect(pages["en"].get_by_role("heading", name="Je suis chez moi")).to_be_visible(timeout=SLOW)
        for page in pages.values():
            page.context.close()
