"""A download in the model lab, watched: how far it is, then the maps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchmarks.serving import serve
from tests.viz_core.hub.fake_hub import FakeHub, serving
from tests.viz_core.hub.families import build

SLOW = 180_000  # the first model takes transformers' import along


def test_a_download_shows_how_far_it_is(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    model.mkdir()
    build("gpt2", model)
    fake = FakeHub()
    fake.repos["someone/gpt"] = {file.name: file.read_bytes() for file in model.iterdir()}
    fake.open.clear()
    with serving(fake) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        with serve(tmp_path) as url:
            page.goto(f"{url}/model-lab?ml-source=Type+a+name&ml-name=someone%2Fgpt&ml-start=The+cat&ml-new=2")
            page.get_by_role("button", name="Download").click(timeout=SLOW)
            expect(page.get_by_text("Loading someone/gpt")).to_be_visible(timeout=SLOW)
            bar = page.get_by_role("progressbar")
            expect(bar).to_be_visible(timeout=SLOW)
            # Everything but the weights has come: some of the way, and not all of it.
            expect(bar).to_have_attribute("aria-valuenow", re.compile("^[1-9][0-9]?$"), timeout=SLOW)
            fake.open.set()
            expect(page.get_by_text(re.compile("tokens · 8 maps"))).to_be_visible(timeout=SLOW)
            expect(bar).to_have_count(0)
