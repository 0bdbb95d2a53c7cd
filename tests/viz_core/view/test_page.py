"""The view as a file and in a notebook."""

import base64
import re
from html import unescape
from pathlib import Path

import pytest
import torch

from benchmarks.view_bytes import decode_view
from tests.viz_core.view.attention_groups import make_group, page_of
from viz_core.hub import Token
from viz_core.runtime.assets import Provenance
from viz_core.trace import attend, record
from viz_core.view.components import WORD_NAMES, module_sources, read_component, view_words
from viz_core.view.grouping import group_calls
from viz_core.view.notebook import AttentionView
from viz_core.view.payload import View
from viz_core.view.state import ViewState


def bytes_in(page: str) -> bytes:
    return base64.b64decode(re.search(r'id="data">([^<]*)<', page)[1])


def test_a_page_holds_every_map_and_asks_for_nothing():
    group = make_group(5, 7)
    page = page_of(View([group], view_words()), ViewState("cross", 1, 2))
    decoded = decode_view(bytes_in(page))
    assert decoded.header["offline"] is True
    for layer in range(2):
        for head in range(3):
            sent = decoded.parts[f"map 0.cross:{layer}.{head}:mean:tokens"]
            assert torch.equal(sent, group.calls[layer].weights(head=head)[0])
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    loads = re.findall(r"^import\b|import\s*\(.*|fetch\s*\(|@import", page, flags=re.MULTILINE)
    assert loads == ["import(urlOf(entry));"]  # of a text in the page


@pytest.mark.attack("exports")
def test_hostile_titles_and_tokens_stay_text():
    group = make_group(2, 2, "self", query_tokens=("</script><img src=x>", "b"))
    page = page_of(View([group], view_words()), ViewState("self", 0, 0), title="</title><script>alert(1)</script>")
    assert "<img" not in page
    assert "<script>alert" not in page


@pytest.mark.attack("exports")
def test_where_the_same_view_opens_is_told_and_is_an_address_of_the_web():
    view, state = View([make_group(2, 2, "self")], view_words()), ViewState("self", 0, 0)
    page = page_of(view, state, link='https://atlas.example/t?head=a&pin="><img>')
    assert page.count("https://atlas.example/t?head=a&amp;pin=&quot;&gt;&lt;img&gt;") == 3  # head and foot
    assert "<img>" not in page
    assert "<footer>" not in page_of(view, state)
    with pytest.raises(ValueError, match="link: expected an address that begins with https"):
        page_of(view, state, link="javascript:alert(1)")


def test_the_page_is_headed_by_its_title_the_model_and_the_text():
    made = Provenance("<b>small</b>", "", "He is calm.")
    view, state = View([make_group(2, 2, "self", provenance=made)], view_words()), ViewState("self", 0, 0)
    page = page_of(view, state, title="A page")
    header = page.split("<header>")[1].split("</header>")[0]
    assert header.startswith("<h1>A page</h1>")
    assert "<title>A page · &lt;b&gt;small&lt;/b&gt;</title>" in page
    assert "&lt;b&gt;small&lt;/b&gt;" in header
    assert "He is calm." in header
    assert "<header>" not in page_of(view, state)


def test_maps_that_do_not_fit_stay_thumbnails():
    page = page_of(View([make_group(5, 7)], view_words()), ViewState("cross", 0, 0), max_bytes=4 * 35)
    parts = decode_view(bytes_in(page)).parts
    # The first head fits; what an opening view is sent unasked comes as well.
    assert {"picture 0 cross 0", "picture 0 cross 1", "map 0.cross:0.0:mean:tokens"} <= set(parts)


def test_a_file_holds_the_measures_of_layers_of_all_heads_and_of_words():
    group = make_group(3, 4, layers=2, heads=2, key_words=(0, 0, 1, 2))
    other = make_group(3, 4, layers=2, heads=2, key_words=(0, 0, 1, 2))
    page = page_of(View([group], view_words(), [other], ("a", "b")), ViewState("cross", 0, 0))
    parts = {part["name"]: part for part in decode_view(bytes_in(page)).header["parts"]}
    assert parts["measures 0.cross:0.0_0.1:max:tokens"]["measures"].keys() == {"first"}
    assert {
        *("measures 1.cross:0.0_0.1_1.0_1.1:mean:words", "measures 0.cross:1.1:mean:words", "change 0 cross 1"),
        *("measures 0.cross:1.0_1.1:mean:tokens", "measures 1.cross:0.0_0.1:max:words"),
    } <= parts.keys()


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(tmp_path: Path):
    view = AttentionView([make_group(5, 7)])
    view.height = 500
    shown = view._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "height: 500px" in shown
    assert decode_view(bytes_in(unescape(shown))).header["state"]["group"] == "cross"
    view.save(tmp_path / "view.html")
    assert bytes_in((tmp_path / "view.html").read_text(encoding="utf-8")) == bytes_in(view.page())


def test_calls_are_grouped_by_stack_and_kind():
    with record() as trace:
        for site, queries, keys in (("encoder.0.self", 3, 3), ("encoder.1.self", 3, 3), ("decoder.0.cross", 2, 3)):
            attend(torch.randn(1, 2, queries, 4), *[torch.randn(1, 2, keys, 4)] * 2, site=site)
    encoder, cross = group_calls(trace, {"encoder": ("a", "b", "c")})
    assert (encoder.label, len(encoder.calls), encoder.key_tokens) == ("encoder self", 2, ("a", "b", "c"))
    assert (cross.query_tokens, cross.key_tokens) == (("0", "1"), ("a", "b", "c"))


def test_any_site_and_any_tokens_can_be_shown():
    """Sites with "/" and blanks (merged runs, names of one's own), and tokens of a Hugging Face model's run."""
    x = torch.randn(1, 2, 2, 4)
    with record() as trace:
        attend(x, x, x, site="my run/block 0.0.self attention")
    tokens = [Token(1, "The", "The"), Token(2, " cat", "·cat")]
    (group,) = group_calls(trace, {"my run/block 0": tokens})
    assert group.id == "0-self-attention"
    assert group.query_tokens == group.key_tokens == ("The", "·cat")
    assert AttentionView((group,))._repr_html_().startswith("<iframe srcdoc=")


def test_every_word_that_the_scripts_name_is_there():
    code = "".join(module_sources("attention_view").values())
    named = set(re.findall(r'(?:words|view\.words)\.text\("(\w+)"', code))
    named |= set(re.findall(r'data-(?:word|label)="(\w+)"', read_component("attention_view").markup))
    assert len(named) > 40
    assert named <= set(WORD_NAMES)
