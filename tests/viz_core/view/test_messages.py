"""What a browser says and is answered, and what leaves with a stranger's words in it."""

import ast
import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.viz_core.hostile import FORMULAS, MARKUP
from tests.viz_core.view.attention_groups import make_group, page_of
from viz_core.trace import AttentionCall
from viz_core.view import requests
from viz_core.view.components import COMPONENTS, view_words
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.responses import changed_attention, joined_names, match_tokens, subtract_matched
from viz_core.view.save import RunSource, saved_view
from viz_core.view.state import DisplayOptions, ViewState, read_message, reopened, site_of_state

DEFAULT = ViewState("cross", 1, 2, (requests.Pin("query", 0),))


@pytest.fixture(scope="module")
def groups():
    return (make_group(4, 5),)


def test_a_message_from_the_browser_is_read(groups):
    message = {"group": "cross", "layer": 0, "head": 2, "pins": ["k4", "k1"], "display": {"mode": "links"}, "turn": 7}
    expected = ViewState("cross", 0, 2, (requests.Pin("key", 4), requests.Pin("key", 1)), DisplayOptions(mode="links"))
    assert read_message(message, groups, DEFAULT) == expected
    assert read_message(message | {"pins": []}, groups, DEFAULT) == replace(expected, pins=())


@pytest.mark.parametrize(
    "message",
    [
        *(None, "cross.0.0", {}, [], {"group": "cross"}),
        {"group": "cross", "layer": "0", "head": 0},
        {"group": ["cross"], "layer": 0, "head": 0},
        {"group": "cross", "layer": 0, "head": -1},
        *({"group": "cross", "layer": True, "head": 0}, {"group": "cross", "layer": 0.0, "head": 0}),
        {"group": "cross", "layer": 2, "head": 0},
        {"group": "self", "layer": 0, "head": 0},
    ],
)
def test_a_message_that_names_no_head_is_none(groups, message):
    assert read_message(message, groups, DEFAULT) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("pins", pins) for pins in ("q1", {}, ["v0"], ["k5"], ["q1", "k1"], [["q1"]], ["q1"] * 3 + ["x"], [1])),
        *(
            ("display", display)
            for display in (3, {"mode": 3}, {"mode": "x"}, {"heads": "9.9"}, {"no": "x"}, {3: "map"})
        ),
        ("display", {"zoom": "<script>"}),
    ],
)
def test_a_message_keeps_its_head_where_its_pins_or_look_are_none(groups, field, value):
    message = {"group": "cross", "layer": 0, "head": 2, field: value}
    assert read_message(message, groups, replace(DEFAULT, pins=())) == ViewState("cross", 0, 2)


def renamed(group: MapGroup, kind: str, heads: int) -> MapGroup:
    """The group with sites of its own: "decoder.LAYER.KIND"."""
    calls = tuple(AttentionCall(f"decoder.{layer}.{kind}", call.source) for layer, call in enumerate(group.calls))
    return MapGroup(group.id, group.label, "French", "English", group.query_tokens, group.key_tokens, calls)


GROUPS = (renamed(make_group(5, 5, "self", heads=4), "self", 4), renamed(make_group(5, 7, heads=2), "cross", 2))
START = ViewState("self", 0, 3, (requests.Pin("query", 1),), DisplayOptions(palette="magma", zoom="0.0.2.2"))


def test_another_layer_keeps_head_and_pins() -> None:
    found = reopened(GROUPS, START, site="decoder.1.self")
    assert found == ViewState("self", 1, 3, (requests.Pin("query", 1),), START.display)
    assert site_of_state(GROUPS, found) == "decoder.1.self"


def test_another_kind_of_map_keeps_how_one_looks_but_not_where() -> None:
    found = reopened(GROUPS, START, site="decoder.1.cross", head=1)
    assert found == ViewState("cross", 1, 1, (), DisplayOptions(palette="magma"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"site": "decoder.2.self"}, "site: expected one of decoder.0.self, .*decoder.1.cross, got 'decoder.2.self'"),
        ({"site": "decoder.0.cross"}, "head: expected 0 to 1 of decoder.0.cross, got 3"),
        ({"head": 4}, "head: expected 0 to 3 of decoder.0.self, got 4"),
        ({"pins": ["q5"]}, "pins: expected 'q0' to 'q4', or 'k0' to 'k4', all on one side, got \\['q5'\\]"),
        ({"display": {"mode": "upside down"}}, "mode: expected map"),
        ({"display": {"mode": "picture"}}, "display: expected one of heads that there are"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reopened(GROUPS, START, **change)


TEXTS = st.lists(st.sampled_from("abc"), max_size=6)


def distance(first: list[str], second: list[str]) -> int:
    """Edits between two lists, by the recursion itself."""

    @cache
    def d(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(d(i - 1, j) + 1, d(i, j - 1) + 1, d(i - 1, j - 1) + (first[i - 1] != second[j - 1]))

    return d(len(first), len(second))


@given(TEXTS, TEXTS)
def test_no_way_from_one_text_to_the_other_is_cheaper(first: list[str], second: list[str]) -> None:
    pairs = match_tokens(first, second)
    assert [i for i, _ in pairs if i is not None] == list(range(len(first)))
    assert [j for _, j in pairs if j is not None] == list(range(len(second)))
    assert sum(i is None or j is None or first[i] != second[j] for i, j in pairs) == distance(first, second)


def test_a_word_replaced_and_one_put_in_by_hand() -> None:
    first, second = "the cat sat".split(), "the dog sat down".split()
    assert joined_names(first, second, match_tokens(first, second)) == ["the", "cat | dog", "sat", "∅ | down"]
    first, second = "le chat noir dort".split(), "le chien dort".split()  # of two cheapest ways the app's
    assert joined_names(first, second, match_tokens(first, second)) == ["le", "chat | ∅", "noir | chien", "dort"]


def test_a_key_that_one_text_lacks_has_no_weight_there_and_a_query_has_nothing_to_compare() -> None:
    first, second = np.array([[0.5, 0.5]]), np.array([[0.25, 0.5, 0.25], [1.0, 0.0, 0.0]])
    found = subtract_matched(first, second, [(0, 0), (None, 1)], [(0, 0), (1, 1), (None, 2)])
    np.testing.assert_array_equal(found, [[0.25, 0.0, -0.25], [np.nan] * 3])


def test_change_is_total_variation_over_the_rows_that_both_have() -> None:
    first = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    second = np.array([[0.5, 0.5, 0.0], [0.0, 0.75, 0.25]])
    rows = [(0, 0), (1, None), (2, 1)]
    columns = [(0, 0), (None, 1), (1, 2)]  # a key that the first lacks has no weight there
    # Row 0: |1 - 1/2| + |0 - 1/2| + 0 = 1; row 2: 1/4 + 3/4 + |3/4 - 1/4| = 3/2; mean, halved
    assert changed_attention(first, second, rows, columns) == pytest.approx((1 + 1.5) / 2 / 2)
    assert changed_attention(first, second, [(0, None)], columns) is None


HEADS = requests.MapRequest(((2, 5), (2, 6)))
WORDS = requests.MapRequest(((0, 1), (11, 0)), "max", words=True)


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("picture 0 cross 11", requests.GroupRequest(0, "cross", requests.ThumbnailsRequest(11))),
        (
            "measures 0.cross:2.5_2.6:max:tokens",
            requests.GroupRequest(0, "cross", requests.MeasuresRequest(replace(HEADS, how="max"))),
        ),
        ("token 0 cross 2 q10", requests.GroupRequest(0, "cross", requests.TokenRequest(2, requests.Pin("query", 10)))),
        ("map 0.cross:2.5_2.6:mean:tokens", requests.GroupRequest(0, "cross", HEADS)),
        ("map 1.decoder-self:0.1_11.0:max:words", requests.GroupRequest(1, "decoder-self", WORDS)),
        (
            "tile 0.cross:2.5_2.6:mean:tokens 3 4 1 20",
            requests.GroupRequest(0, "cross", requests.TileRequest(HEADS, 3, 4, 1, 20)),
        ),
        (
            "rows 0.cross:2.5_2.6:mean:tokens 512 64 0 900",
            requests.GroupRequest(0, "cross", requests.RowsRequest(HEADS, 512, 64, 0, 900)),
        ),
        ("page", requests.FileRequest("page")),
    ],
)
def test_each_is_read_and_written_back(text, request_):
    assert requests.read_request(text) == request_
    assert str(request_) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "page ", "picture", "picture 2 cross 0", "picture 0 cross 00", "picture 0 ../x 0", "picture 0.cross 0"),
        *("picture 0 cross 00000", "image 0 cross 1", "token 0 cross 1 q", "token 0 cross 1 5", "token 0 cross 1 q05"),
        *("map", "map 0.cross:2.5:mean", "map 2.cross:2.5:mean:tokens", "map 0.cross:2:mean:tokens"),
        *("map 0.cross:2.5_:mean:tokens", "map 0.cross:2.5:sum:tokens", "map 0.../x:2.5:mean:tokens"),
        *("map 0.cross:2.٥:mean:tokens", "map 0.cross:2.5:mean:tokens\n", "tile 0.cross:2.5:mean:tokens 0 0 0"),
        *("rows 0.cross:2.5:mean:tokens 0 1 0", "rows 0.cross:2.5:mean:tokens 0 -1 0 1", "rows 0 cross 0 1 0 1"),
        *("x" * 10_000, "map " + "0." * 5000, "map 0.cross:" + "_".join(["0.0"] * 5000) + ":mean:tokens"),
        *("picture 0.cross:0.1:mean:tokens", "token 0 cross q1 2", "map 0 cross 1 2"),
    ],
)
def test_what_is_no_request_stays_as_it_is(text):
    assert requests.read_request(text) == requests.UnknownRequest(text)
    assert str(requests.read_request(text)) == text


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js on this machine")


def group(text: str) -> MapGroup:
    return make_group(2, 2, "self", query_tokens=(text, "b"), key_tokens=("a", text))


def run(script: str) -> str:
    """What a script says."""
    return subprocess.run(["node", "-e", script], capture_output=True, check=True, timeout=60).stdout.decode()


@pytest.mark.attack("exports")
@needs_node
@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_a_table_is_a_formula(text: str) -> None:
    """The line that writes a cell, run by itself: what begins as a formula does is text, and one cell."""
    code = (COMPONENTS / "attention_view" / "export.js").read_text(encoding="utf-8")
    line = re.search(r"^const quote = .*$", code, flags=re.MULTILINE)
    assert line is not None
    script = f"{line[0]} process.stdout.write([{json.dumps(text)}, '-', 'cat'].map(quote).join(','))"
    (cells,) = csv.reader(io.StringIO(run(script), newline=""))
    assert cells == [f"'{text}", "-", "cat"]


@pytest.mark.attack("exports")
@pytest.mark.parametrize("text", MARKUP)
def test_a_saved_page_says_it_and_does_nothing(text: str) -> None:
    page = page_of(View([group(text)], view_words()), ViewState("self", 0, 0), title=text)
    assert page.count("<script") == page_of(View([group("x")], view_words()), ViewState("self", 0, 0)).count("<script")
    assert "<img" not in page
    data = re.search(r'id="data">([A-Za-z0-9+/=]*)</script>', page)
    assert data, "nothing but base64 stands where the words are"


@pytest.mark.attack("exports")
@pytest.mark.parametrize("text", [*MARKUP, *FORMULAS])
def test_a_saved_notebook_holds_it_as_a_literal(text: str) -> None:
    run_source = RunSource(f"from viz_core import view\n\nrun = {text!r}")
    notebook = json.loads(
        saved_view(View([group(text)], view_words()), ViewState("self", 0, 0), ".ipynb", run_source=run_source)
    )
    code = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    values = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    assert text in values
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    assert {ast.unparse(call.func) for call in calls} <= {"view", "shown.open_head"}


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    """Pictures as the browser's own code writes them, by the text that is drawn and told in them."""
    files = [COMPONENTS / "shared" / "elements.js", COMPONENTS / "attention_view" / "file_formats.js"]
    code = "".join(re.sub(r"^import .*$|^export ", "", file.read_text(encoding="utf-8"), flags=re.M) for file in files)
    draw = """
      const drawn = TEXTS.map((text) => {
        const context = Object.assign(new SvgContext(), { font: "12px serif", fillStyle: text });
        context.fillText(text, 0, 0);
        return [text, context.document(9, 9, { title: text, lines: [text], link: text })];
      });
      process.stdout.write(JSON.stringify(Object.fromEntries(drawn)));
    """
    made: dict[str, str] = json.loads(run(code + draw.replace("TEXTS", json.dumps([*MARKUP, *FORMULAS]))))
    return made


@pytest.mark.attack("exports")
@needs_node
@pytest.mark.parametrize("text", [*MARKUP, *FORMULAS])
def test_a_picture_of_a_view_writes_it_as_text(text: str, drawn: dict[str, str]) -> None:
    root = ElementTree.fromstring(drawn[text])
    assert {element.tag.partition("}")[2] for element in root.iter()} == {
        *("svg", "title", "desc", "text", "metadata"),
        *("RDF", "Description", "description", "source", "creator"),
    }
    (label,) = root.findall("{http://www.w3.org/2000/svg}text")
    assert label.text == text.replace("\0", "\ufffd").replace("\r", "\n")  # as XML is read
