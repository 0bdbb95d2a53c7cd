"""The page that a browser is sent first: Streamlit's own, with what its chapter will need named in it.

Left to itself a browser hears of a chapter's scripts one after the other, each once what stands before it is drawn. So
they are named at once, and plotly.js, which takes longer to read than all else, is read while the server works.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache, partial
from pathlib import Path

import streamlit
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from hosting.background import begin
from hosting.scripts import PLOTLY, script
from ui.contents import all_chapters
from viz_core.runtime.assets import AssetError

_STATIC = Path(streamlit.__file__).parent / "static"
_CHUNKS = (
    *("BidiComponent", "Selectbox", "Html", "PageLink", "DownloadButton", "Radio", "rehype-katex"),
    *("ButtonGroup", "Slider", "NumberInput", "TextInput"),
)
"""Streamlit's own scripts that it asks for later, and most chapters need: a control stands empty until its is here."""
_COMPONENTS = ("history", "near", "present", "tour")
"""Ours that every chapter has."""
_CHARTS_LATER = ("transformer", "model-lab")
"""Chapters that open on maps: their charts stand further down."""
_IMPORTED = re.compile(r"""(?:from|import)["'`]\./([\w.-]+\.js)["'`]""")
_HEAD = 4096  # characters of a script, in which its imports stand
_READ_LATER = """<script>
      // A page that has asked the server for its chapter has nothing to do until the answer comes.
      (function wait() {
        if (document.querySelector(".stApp")?.dataset.testConnectionState !== "CONNECTED") return setTimeout(wait, 10);
        for (const { href } of document.querySelectorAll("link[data-read]")) {
          const script = Object.assign(document.createElement("script"), { src: href, onerror: () => script.remove() });
          document.head.append(script);
        }
      })();
    </script>"""


def routes() -> list[Route]:
    """Where the chapters' first pages are, under whatever path the app is served; home's is Streamlit's own."""
    chapters = all_chapters()[1:]
    return [Route(f"{base}/{name}", partial(_answer, name)) for name in chapters for base in ("", "/{base:path}")]


def _answer(chapter: str, _request: Request) -> Response:
    begin()  # whoever opens a chapter will need the libraries, and its script asks for them half a second later
    return HTMLResponse(first_page(chapter not in _CHARTS_LATER), headers={"Cache-Control": "no-cache"})


@lru_cache(maxsize=2)
def first_page(charts: bool) -> str:
    """Streamlit's page for a chapter; where a chart stands in its first window, with plotly.js."""
    ours = _addresses([*_COMPONENTS, "chart" if charts else "attention_view"])
    names = [f"./static/js/{name}" for name in _chunks()] + [f"./{address}" for address in ours]
    lines = [f'<link rel="modulepreload" crossorigin href="{name}">' for name in names]
    for address in _addresses([PLOTLY] if charts else []):
        lines += [f'<link rel="preload" as="script" href="./{address}" data-read>', _READ_LATER]
    return streamlits_page().replace("</head>", "".join(f"  {line}\n  " for line in lines) + "</head>")


def streamlits_page() -> str:
    """The one that its server would send."""
    return (_STATIC / "index.html").read_text(encoding="utf-8")


def _addresses(names: Collection[str]) -> list[str]:
    """Of scripts of ours; a file that is missing or damaged is told where it is needed, not here."""
    try:
        return [script(name).address for name in names]
    except AssetError:
        return []


def _chunks() -> list[str]:
    """Streamlit's files and all that these import, without what its page names itself; none of another version."""
    page, found = streamlits_page(), dict[str, None]()
    ahead = [path.name for name in _CHUNKS for path in (_STATIC / "static" / "js").glob(f"{name}.*.js")]
    while ahead:
        name = ahead.pop(0)
        if name not in found and name not in page:
            found[name] = None
            with (_STATIC / "static" / "js" / name).open(encoding="utf-8") as file:
                ahead += _IMPORTED.findall(file.read(_HEAD))
    return list(found)
