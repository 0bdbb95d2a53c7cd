"""The page that a browser is sent first: Streamlit's own, with what home or a chapter will need named in it.

Left to itself a browser hears of a page's scripts one after the other, each once what stands before it is drawn. So
they are named at once, and plotly.js, which takes longer to read than all else, is read while the server works.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache, partial
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from serving.http.static_scripts import PLOTLY, script
from serving.process.background import start_background_work
from ui.chapter.contents import all_chapters, chapter_entries
from viz_core.runtime.assets import AssetError

_STATIC = Path(st.__file__).parent / "static"
_EVERYWHERE = ("BidiComponent", "Selectbox", "Html", "PageLink")
_AT_HOME = ("ImageList",)
_IN_CHAPTERS = (
    *("DownloadButton", "Radio", "rehype-katex", "ButtonGroup", "Slider", "NumberInput", "TextInput"),
    *("Button", "Checkbox"),
)
_COMPONENTS_AT_HOME = ("history", "tour", "seen")
_COMPONENTS = ("history", "near", "present", "tour")
"""Ours that every chapter has."""
_IMPORTED = re.compile(r"""(?:from|import)["'`]\./([\w.-]+\.js)["'`]""")
_HEAD = 4096  # characters of a script, in which its imports stand
_CONNECT_AT_ONCE = """<script>
      // Streamlit asks for its server's health first, at a chapter's address in vain, and opens its socket after that;
      // so it does both at once. Nobody but this very site may steer the page.
      window.__streamlit = {
        BACKEND_BASE_URL: new URL("./", location.href).href,
        HOST_CONFIG: { allowedOrigins: [location.origin], useExternalAuthToken: false },
      };
    </script>"""
_READ_LATER = """<script>
      // A page that has asked the server for its chapter has nothing to do until the answer comes.
      (function wait() {
        if (document.querySelector(".stApp")?.dataset.testConnectionState !== "CONNECTED") return setTimeout(wait, 10);
        for (const { href: src, rel } of document.querySelectorAll("link[data-read]")) {
          const type = rel === "modulepreload" ? "module" : "text/javascript";
          const script = Object.assign(document.createElement("script"), { src, type, onerror: () => script.remove() });
          document.head.append(script);
        }
      })();
    </script>"""


def routes() -> list[Route]:
    """Where the first pages are: the chapters', and home's, under whatever path the app is served."""
    home, *chapters = all_chapters()
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    return [
        Route(f"/{base}/" if base else "/", partial(_answer, home)),
        *(Route(f"{path}/{name}", partial(_answer, name)) for name in chapters for path in ("", "/{base:path}")),
    ]


def _answer(name: str, _request: Request) -> Response:
    if name != all_chapters()[0]:
        start_background_work()  # half a second before the chapter's script needs the libraries
    return HTMLResponse(first_page(name), headers={"Cache-Control": "no-cache"})


@lru_cache(maxsize=16)
def first_page(name: str) -> str:
    """Streamlit's page for home or a chapter; where a chart stands in its first window, with plotly.js."""
    entry = chapter_entries().get(name)  # home has none
    if entry:
        chunks = _chunks([*_EVERYWHERE, *_IN_CHAPTERS, *entry.streamlit_scripts])
        ours = _addresses([*_COMPONENTS, *entry.components])
    else:
        chunks, ours = _chunks([*_EVERYWHERE, *_AT_HOME]), _addresses(_COMPONENTS_AT_HOME)
    lines = [_CONNECT_AT_ONCE]
    lines += [f'<link rel="modulepreload" crossorigin href="./static/js/{chunk}">' for chunk in chunks]
    lines += [f'<link rel="modulepreload" crossorigin href="./{address}" data-read>' for address in ours]
    for address in _addresses([PLOTLY] if entry and "chart" in entry.components else []):
        lines += [f'<link rel="preload" as="script" href="./{address}" data-read>']
    lines += [_READ_LATER]
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


def _chunks(names: Collection[str]) -> list[str]:
    """Streamlit's files and all that these import, without what its page names itself; none of another version."""
    page, found = streamlits_page(), dict[str, None]()
    ahead = [path.name for name in names for path in (_STATIC / "static" / "js").glob(f"{name}.*.js")]
    while ahead:
        name = ahead.pop(0)
        if name not in found and name not in page:
            found[name] = None
            with (_STATIC / "static" / "js" / name).open(encoding="utf-8") as file:
                ahead += _IMPORTED.findall(file.read(_HEAD))
    return list(found)
