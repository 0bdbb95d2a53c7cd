"""The view as a file: a page, a notebook, a figure, or a page whose model runs in the browser."""

import base64
import html
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import torch

from viz_core.runtime.assets import Provenance
from viz_core.trace import Trace, intervene, save_trace, switched_off
from viz_core.trace.files import saved_source
from viz_core.view.components import DARK, ENGLISH, LIGHT, languages, read_component
from viz_core.view.grouping import other_stack
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View, encode_view
from viz_core.view.responses import every_request
from viz_core.view.state import ViewState, open_group, site_of_state
from viz_core.view.static_pictures import static_forms
from viz_core.view.visible_map import fill, made_lines

_FIGURES = (".svg", ".pdf", ".png")

PAGE_BYTES = 8 * 2**20
"""A file holds all thumbnails, and exact maps up to so many bytes."""

_THEME = f"""
:root {{ color-scheme: light dark; {LIGHT}}}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK}}} }}
body {{ margin: 0; padding: 1rem; background: var(--st-background-color); }}
header {{ margin-bottom: 1rem; color: var(--st-text-color); font: 0.9rem sans-serif; overflow-wrap: anywhere; }}
h1 {{ margin: 0; font-size: 1.2rem; }}
header p {{ margin: 0.25rem 0 0; }}
footer {{ margin-top: 1rem; font: 0.8rem sans-serif; overflow-wrap: anywhere; }}
footer a {{ color: var(--st-primary-color); }}
"""

_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>{canonical}
<style>{theme}{style}</style>
</head>
<body>{head}
<main id="here">{markup}</main>{foot}
<script type="application/octet-stream" id="data">{data}</script>
<script type="module">
const show = {show};
const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (c) => c.charCodeAt(0));
const redraw = () => show({{ data: bytes, parentElement: document.getElementById("here") }});
redraw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
</script>
</body>
</html>
"""

_LIVE_PAGE = """<!doctype html>
<html lang="{language}"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<body style="margin: 0">
<iframe src="{address}" title="{title}" width="100%" height="900" style="border: 0; display: block"></iframe>
<script>
const [frame] = document.getElementsByTagName("iframe");
addEventListener("message", ({{ data, source }}) => {{
  if (source === frame.contentWindow) frame.height = data.atlasHeight;
}});
</script>
"""

_RECORDED = """
from base64 import b64decode
from pathlib import Path
from tempfile import mkdtemp

from viz_core import view
from viz_core.trace import load_trace

file = Path(mkdtemp()) / "recording.safetensors"  # queries and keys, as they were when this was saved
file.write_bytes(b64decode("{written}"))
recording = load_trace(file)
tokens = {tokens}
keys = {keys}
"""

MAX_BYTES = 16 * 2**20
"""A notebook carries a recording no larger than this; an editor would hardly open one."""

Need = Literal["picture", "sound", "video", "model"]
"""What does not come along with a notebook; its text says so in the words of this name."""


@dataclass(frozen=True)
class RunSource:
    """Python code that makes what a view shows."""

    code: str  # Python, after which `view` and what it is given are there
    needs: tuple[Need, ...] = ()  # what must be there besides the library
    shown: str = "run"  # what it is given

    def then(self, code: str, needs: tuple[Need, ...] = ()) -> "RunSource":
        """Append code."""
        return RunSource(f"{self.code}\n{code}", (*self.needs, *needs), self.shown)

    @classmethod
    def of_recording(cls, groups: Sequence[MapGroup]) -> "RunSource":
        """Return code that carries the recording itself, queries and keys.

        Calls whose maps come of more than these (an edit, shares of what a head adds) come along as their maps.
        """
        trace = Trace()
        for call in dict.fromkeys(call for group in groups for call in group.calls):
            trace.add(saved_source(call), call.site)
        if trace.nbytes > MAX_BYTES:
            raise ValueError(
                f"notebook: expected a recording of at most {MAX_BYTES // 2**20} MB, "
                f"got {trace.nbytes / 2**20:.0f} MB; viz_core.trace.save_trace keeps it in a file of its own"
            )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "recording"
            save_trace(trace, path)
            written = base64.b64encode(path.read_bytes()).decode("ascii")
        tokens, keys = _names(groups)
        row = f", row={groups[0].row}" if groups[0].row else ""
        return cls(_RECORDED.format(written=written, tokens=tokens, keys=keys), shown=f"recording, tokens, keys{row}")


def saved_view(
    view: View,
    state: ViewState,
    ending: str,
    *,
    title: str = "",
    link: str = "",
    live: str = "",
    map_only: bool = False,
    max_bytes: int = PAGE_BYTES,
    grid: bool = False,
    run_source: RunSource | None = None,
    default: ViewState | None = None,
) -> bytes:
    """Return the view as a file whose name ends in `ending`.

    ".html" is a page that holds the whole view and loads nothing from elsewhere; ".ipynb" a notebook (nbformat 4.5)
    that installs nothing and runs from top to bottom; ".svg", ".pdf" and ".png" a figure of the open map.

    Args:
        view: what there is.
        state: what it opens with.
        title: of a page, above the view with the model and the text of each input; without it the page has no heading.
            The browser's tab shows it with the model's name.
        link: where the same view opens, if it does; told at the foot of a page and in the caption of a figure.
        live: address of the site without a server (docs/site.md): the page is a frame that opens the view there, where
            the model runs in the browser, as high as it says that the view is.
        map_only: this frame shows the open map and its words, without the other heads and the controls.
        max_bytes: so many bytes of exact maps go into a page; the other heads stay thumbnails.
        grid: a figure shows every head of the open kind instead, each a thumbnail.
        run_source: how a notebook makes the run again; without it the notebook carries the recording.
        default: what `viz_core.view` opens by itself after `run_source`.
    """
    if ending not in (".html", ".ipynb", *_FIGURES):
        raise ValueError(f"path: expected a name that ends in .html, .ipynb, {', '.join(_FIGURES)}, got {ending!r}")
    if grid and ending not in _FIGURES:
        raise ValueError(f"grid: a page or notebook holds every head as it is; expected a figure, got {ending!r}")
    if live and (link or ending != ".html"):
        raise ValueError(f"live: expected a name that ends in .html, and no link, got {ending!r}")
    if map_only and not live:
        raise ValueError("map_only: expected live, a page with a frame; an offline page holds the whole view")
    if live:
        return _live_page(view, state, live, map_only).encode()
    if ending == ".html":
        return _page(view, state, title, link, max_bytes).encode("utf-8", errors="surrogatepass")
    if ending == ".ipynb":
        return _notebook(view, state, run_source, default or ViewState(state.group, 0, 0))
    require_figures()
    from viz_core.view.matplotlib_figure import figure_file  # the extra "notebook"

    return figure_file(view, state, ending, grid, link)


def require_figures() -> None:
    """Raise ImportError if figures are not installed."""
    if find_spec("matplotlib") is None:
        raise ImportError("figures are drawn by matplotlib: pip install 'attention-atlas[notebook]'")


def _page(view: View, state: ViewState, title: str, link: str, max_bytes: int) -> str:
    if link and not link.startswith(("https://", "http://")):
        raise ValueError(f"link: expected an address that begins with https:// or http://, got {link[:80]!r}")
    address = html.escape(link, quote=True)
    wants = every_request(view.groups, view.second, max_bytes)
    data = encode_view(view, state, wants=wants, max_wants=len(wants), offline=True)
    component = read_component("attention_view")
    names = dict.fromkeys((title or "Attention", *(group.provenance.model for group in view.groups)))
    made = "".join(f"<p>{html.escape(line)}</p>" for line in made_lines(view, state, range(2 if view.second else 1)))
    return _PAGE.format(
        language=html.escape(view.language, quote=True),
        title=html.escape(" · ".join(filter(None, names))),
        head=f"\n<header><h1>{html.escape(title)}</h1>{made}</header>" if title else "",
        canonical=f'<link rel="canonical" href="{address}">' if link else "",
        foot=f'<footer><a href="{address}">{address}</a></footer>' if link else "",
        theme=_THEME,
        style=component.style,
        markup=component.markup,
        data=base64.b64encode(data).decode("ascii"),
        show=component.show,
    )


def _live_page(view: View, state: ViewState, site: str, map_only: bool) -> str:
    """Return the page. The model runs here as on the site: ValueError if the site would not show these maps."""
    from viz_core.runtime.hooks import show

    groups, made = view.groups, view.groups[0].provenance
    off = [
        (group, layer, head)
        for group in groups
        for layer, head in group.heads
        if not group.calls[layer].weights(head=head)[group.row].any()
    ]
    with intervene(switched_off((group.calls[layer].site, head) for group, layer, head in off)):
        runs = () if view.second else _runs(made, len(groups[0].query_tokens))
        found = next((run for run in runs if _same(groups, show(run[2]()).groups)), None)
    if found is None:
        raise ValueError(
            "live: expected a translation (greedy or 4 beams), a greedy continuation or a sample picture, by a shipped "
            f"model; the site does not compute these maps of {made.model!r}"
        )
    file, parameters, run = found
    changed = state.display.changes_from(show(run()).state.display)
    parameters |= {
        "off": "_".join(f"{group.id}.{layer}.{head}" for group, layer, head in off),
        "head": f"{state.group}.{state.layer}.{state.head}",
        "pin": ".".join(map(str, state.pins)),
        "look": "~".join(f"{name}-{value}" for name, value in sorted(changed.items())),
        "only": "map" if map_only else "",
    }
    language = view.language if view.language in languages() else ENGLISH
    address = f"{site.rstrip('/')}/{language}/{file}.html#{urlencode({k: v for k, v in parameters.items() if v != ''})}"
    return _LIVE_PAGE.format(
        language=language, title=html.escape(made.text or made.model), address=html.escape(address)
    )


def _runs(made: Provenance, num_tokens: int) -> Iterator[tuple[str, dict[str, Any], Callable[[], object]]]:
    """File of the site, parameters of its address, and the same run here, for each view that may be meant."""
    # Loaded only here: they bring the models along.
    from viz_core.pretrained import load
    from viz_core.pretrained.samples import GARMENTS, SCENES, drawn_picture
    from viz_core.view.hub import run_shipped

    name, text = made.model, made.text
    run: Callable[..., Any]
    if name == "transformer-en-fr":
        translator: Any = load(name)
        for beam in (1, 4):
            yield "view", {"text": text, "beam": beam}, partial(translator.translate, text, beam=beam)
    elif name == "writer-en":
        run = partial(run_shipped, name, text)
        new = num_tokens - len(run(max_new_tokens=0).tokens)
        yield "view-writer", {"text": text, "new": new}, partial(run, max_new_tokens=new)
    elif name in ("vit-fashion-mnist", "vit-cifar10"):
        classifier: Any = load(name)
        for sample in GARMENTS if name == "vit-fashion-mnist" else SCENES:
            run = partial(classifier.classify, drawn_picture(sample))
            yield "view-vision-transformer", {"model": name, "sample": sample}, run


def _same(groups: Sequence[MapGroup], others: Sequence[MapGroup]) -> bool:
    known = [
        [(each.id, each.query_tokens, each.key_tokens, each.provenance) for each in some] for some in (groups, others)
    ]
    calls = [[call.weights().cpu() for each in some for call in each.calls] for some in (groups, others)]
    return known[0] == known[1] and all(torch.allclose(a, b, atol=1e-4) for a, b in zip(*calls, strict=True))


def _notebook(view: View, state: ViewState, run_source: RunSource | None, default: ViewState) -> bytes:
    if run_source is None:
        run_source = RunSource.of_recording(view.groups)
        if state.display.mode == "picture":  # the picture that tokens are patches of stays behind
            state = replace(state, display=replace(state.display, mode="map"))
    words, number = view.words, open_group(view.groups, state).calls[state.layer].layer + 1
    name = fill(words["head_name"], layer=number, head=state.head + 1)
    text = [f"# {fill(words['notebook_title'], name=name)}", words["notebook_text"]]
    text += [words[f"notebook_needs_{need}"] for need in run_source.needs]
    language = "" if view.language == "en" else f", language={view.language!r}"
    display = f"shown = view({run_source.shown}{language})\n{_opening(view.groups, state, default)}\nshown"
    cells = [_cell("markdown", "\n\n".join(text)), _cell("code", run_source.code.strip()), _cell("code", display)]
    cells[-1]["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": static_forms(view, state)}]
    book = {
        "cells": [cell | {"id": f"cell-{i}"} for i, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(book, indent=1).encode("ascii")


def _opening(groups: Sequence[MapGroup], state: ViewState, default: ViewState) -> str:
    """The line that opens the same head; a second input does not come along."""
    arguments = [repr(site_of_state(groups, state)), f"head={state.head}"]
    if state.pins:
        arguments.append(f"pins={[str(pin) for pin in state.pins]}")
    of_second = ("compare", "other") if state.display.other.startswith("1.") else ()
    changed = state.display.changes_from(default.display).items()
    if display := {name: value for name, value in changed if name not in of_second}:
        arguments.append(f"display={display}")
    return f"shown.open_head({', '.join(arguments)})"


def _cell(kind: str, source: str) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
    return cell if kind == "markdown" else cell | {"execution_count": None, "outputs": []}


def _names(groups: Sequence[MapGroup]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Tokens of each stack, and keys of its self-attention where they are others, as `viz_core.view` takes them."""
    tokens: dict[str, list[str]] = {}
    keys: dict[str, list[str]] = {}
    for group in groups:
        tokens.setdefault(group.calls[0].stack, list(group.query_tokens))
    for group in groups:
        call = group.calls[0]
        if call.kind == "cross":
            run, slash, _ = call.stack.rpartition("/")
            read = other_stack(call.stack, list(tokens))
            tokens.setdefault(f"{run}{slash}source" if read == call.stack else read, list(group.key_tokens))
        elif group.key_tokens != group.query_tokens:
            keys.setdefault(call.stack, list(group.key_tokens))
    return tokens, keys
