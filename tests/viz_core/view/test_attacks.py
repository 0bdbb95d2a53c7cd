"""What leaves the Atlas with a stranger's words in it: tables, pages, notebooks, figures, names of files."""

import ast
import csv
import io
import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from tests.viz_core.hostile_texts import FORMULAS, MARKUP
from tests.viz_core.view.attention_groups import make_group, page_of
from viz_core.view.components import COMPONENTS, view_words
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.save import RunSource, saved_view
from viz_core.view.state import ViewState

pytestmark = pytest.mark.attack("exports")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js on this machine")


def group(text: str) -> MapGroup:
    return make_group(2, 2, "self", query_tokens=(text, "b"), key_tokens=("a", text))


def run(script: str) -> str:
    """What a script says."""
    return subprocess.run(["node", "-e", script], capture_output=True, check=True, timeout=60).stdout.decode()


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


@pytest.mark.parametrize("text", MARKUP)
def test_a_saved_page_says_it_and_does_nothing(text: str) -> None:
    page = page_of(View([group(text)], view_words()), ViewState("self", 0, 0), title=text)
    assert page.count("<script") == page_of(View([group("x")], view_words()), ViewState("self", 0, 0)).count("<script")
    assert "<img" not in page
    data = re.search(r'id="data">([A-Za-z0-9+/=]*)</script>', page)
    assert data, "nothing but base64 stands where the words are"


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


@pytest.mark.parametrize("text", [MARKUP[0], MARKUP[6], MARKUP[8], MARKUP[10]])
def test_a_figure_writes_it_as_text(text: str) -> None:
    pytest.importorskip("matplotlib")
    figure = saved_view(View([group(text)], view_words()), ViewState("self", 0, 0), ".svg")
    elements = list(ElementTree.fromstring(figure).iter())
    assert len(elements) > 10
    assert not [element for element in elements if element.tag.endswith(("script", "foreignObject"))]
    links = [value for element in elements for name, value in element.attrib.items() if name.endswith("href")]
    assert all(link.startswith(("#", "data:image/png;")) for link in links)
    assert not [name for element in elements for name in element.attrib if name.lower().startswith("on")]


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
