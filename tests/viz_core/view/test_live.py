"""A saved view whose model runs in the browser: its address says what the site shows, or it is refused."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from PIL import Image

from viz_core import load, load_hub, view
from viz_core.hub import Sampling
from viz_core.images.samples import drawn_picture
from viz_core.trace import intervene, knock_out, off
from viz_core.view.notebook import ViewHandle

BEAMS_DIFFER = "You've got a one-track mind."


def address(handle: ViewHandle, folder: Path) -> str:
    handle.save(folder / "x.html", live="https://example.org/atlas/")
    found = re.search('src="https://example.org/atlas/([^"]*)"', (folder / "x.html").read_text(encoding="utf-8"))
    assert found
    return unescape(found[1])


def test_the_address_holds_text_beam_heads_pins_and_look(tmp_path: Path) -> None:
    translator = load("transformer-en-fr", device="cpu")
    with intervene({"decoder.2.cross": off(1), "encoder.0.self": off(5)}):
        handle = view(translator.translate("I am lost."), language="pt-BR")
    handle.open_head("decoder.1.cross", 3, pins="q1", display={"mode": "links"})
    expected = "text=I+am+lost.&beam=1&off=encoder-self.0.5_cross.2.1&head=cross.1.3&pin=q1&look=mode-links"
    assert address(handle, tmp_path) == f"pt-BR/view.html#{expected}"
    handle.save(tmp_path / "x.html", live=True)
    assert 'src="site/pt-BR/view.html#' in (tmp_path / "x.html").read_text(encoding="utf-8")
    greedy, beams = (translator.translate(BEAMS_DIFFER, beam=beam) for beam in (1, 4))
    assert greedy.text != beams.text
    assert "&beam=4&" in address(view(beams), tmp_path)


def test_texts_and_sample_pictures_are_shown_anew(tmp_path: Path) -> None:
    written = load_hub("writer-en", device="cpu", offline=True).run("Tom is", max_new_tokens=5)
    assert address(written.view(), tmp_path) == "en/view-writer.html#text=Tom+is&new=5&head=decoder-self.2.0"
    seen = load("vit-cifar10", device="cpu").classify(drawn_picture("cat"))
    expected = "en/view-vision-transformer.html#model=vit-cifar10&sample=cat&head=encoder-self.4.0"
    assert address(view(seen), tmp_path) == expected


def test_what_the_site_does_not_show_is_refused(tmp_path: Path) -> None:
    writer = load_hub("writer-en", device="cpu", offline=True)
    with intervene({"decoder.1.cross": knock_out(2, query=1, key=0)}):
        edited = load("transformer-en-fr", device="cpu").translate("I am lost.")
    others = (
        writer.run("Tom is", max_new_tokens=12, sampling=Sampling(1.5, seed=3)).view(),
        view(load("vit-cifar10", device="cpu").classify(Image.new("RGB", (32, 32), "red"))),
        view(edited),
        view(edited.trace),
    )
    for handle in others:
        with pytest.raises(ValueError, match="does not compute these maps"):
            handle.save(tmp_path / "x.html", live=True)
    with pytest.raises(ValueError, match="expected a name that ends in .html"):
        view(edited).save(tmp_path / "x.ipynb", live=True)
    assert not list(tmp_path.iterdir())
