"""The page that a browser loads first: Streamlit's own, with preload links for what home or a chapter will need.

Without them a browser requests a page's scripts one after the other, each once what stands before it is drawn; and
plotly.js, which takes longer to parse than all else, is parsed while the server works if the first picture needs it.
"""

import json
from collections.abc import Collection
from functools import lru_cache, partial

import streamlit as st
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from serving.http.static_scripts import PLOTLY, FrontEndFiles, script
from serving.process.background import start_background_work
from ui.chapter.contents import all_pages, chapter_entries
from ui.streamlit_internals.front_end import (
    CHOSEN_IN_SIGHT,
    CONNECT_AT_ONCE,
    NOTHING_JUMPS,
    NUMBERS_OF_PAGE,
    READ_LATER,
    SERVER_GONE,
    STATIC_FILES,
    chunks,
    index_html,
)
from ui.text.words import COOKIE, LANGUAGE, languages, load_words, match_language
from viz_core.runtime.assets import ASSETS, AssetError

_EVERYWHERE = ("BidiComponent", "Selectbox", "Html", "PageLink")
_AT_HOME = ("ImageList", "TextInput")
_IN_CHAPTERS = (
    *("DownloadButton", "Radio", "rehype-katex", "ButtonGroup", "Slider", "NumberInput", "TextInput"),
    *("Button", "Checkbox"),
)
_FIRST = {"home": "linked_sentences", "walk": "walk", "review": "review"}
"""The first component of each page that is not a chapter."""
_COMPONENTS = ("history", "lazy_parts", "present", "tour")
"""Ours that every chapter has."""
_STYLE, _WHILE_LOADING = (ASSETS / "components" / f"{name}.css" for name in ("app", "loading"))


def routes() -> list[Route]:
    """Routes of the index pages of all pages, under whatever path the app is served.

    An address that is no page gets that of home, which Streamlit then opens.
    """
    register_url_convertor("page", _PageName())
    home, *others = all_pages()
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    return [
        Route(f"/{base}/" if base else "/", partial(_answer, home)),
        *(Route(f"{path}/{name}", partial(_answer, name)) for name in others for path in ("", "/{base:path}")),
        Route(f"/{base}/{{name:page}}" if base else "/{name:page}", partial(_answer, home)),
    ]


def front_end_files() -> Middleware:
    """Return the middleware that answers for the scripts and styles of Streamlit's front end."""
    return Middleware(FrontEndFiles, STATIC_FILES, "/static")


class _PageName(StringConvertor):
    """A name that may be a page's, not a file's: Streamlit serves those."""

    regex = r"[A-Za-z][\w\-]*"


def _answer(name: str, request: Request) -> Response:
    if name != all_pages()[0]:
        start_background_work()  # half a second before the chapter's script needs the libraries
    # A script that reads the cookie itself waits for it while a hundred files are loaded.
    locales = [request.query_params.get(LANGUAGE, ""), request.cookies.get(COOKIE, "")]
    page = index_page(name).replace('<html lang="en">', f'<html lang="{match_language(filter(None, locales))}">')
    return HTMLResponse(page, headers={"Cache-Control": "no-cache"})


@lru_cache(maxsize=16)
def index_page(name: str) -> str:
    """Return Streamlit's page for one of ours; with plotly.js where its first window has a chart."""
    entry = chapter_entries().get(name)
    if entry:
        scripts = chunks([*_EVERYWHERE, *_IN_CHAPTERS, *entry.streamlit_scripts])
        ours = _addresses([*_COMPONENTS, *entry.components])
    else:
        scripts, ours = chunks([*_EVERYWHERE, *_AT_HOME]), _addresses([_FIRST[name], "history", "tour"])
    lines = [CONNECT_AT_ONCE, NUMBERS_OF_PAGE, NOTHING_JUMPS, CHOSEN_IN_SIGHT]
    lines += [f'<link rel="modulepreload" crossorigin href="./static/js/{chunk}">' for chunk in scripts]
    lines += [f'<link rel="modulepreload" crossorigin href="./{address}" data-read>' for address in ours]
    if entry and "chart" in entry.components:
        # Evaluated before the first picture only if that is a chart: it delays any other.
        read = " data-read" if entry.components[0] == "chart" else ""
        lines += [f'<link rel="preload" as="script" href="./{each}"{read}>' for each in _addresses([PLOTLY])]
    gone = {language: load_words("common", language).group("refused")["restarting"] for language in languages()}
    lines += [READ_LATER, SERVER_GONE.replace("SENTENCES", json.dumps(gone).replace("<", "\\u003c"))]
    # In the body: Streamlit adds its styles to the head, and of two equally specific ones the later counts.
    style, loading = (path.read_text("utf-8") if path.is_file() else "" for path in (_STYLE, _WHILE_LOADING))
    styles = f"<style>\n{style}    </style>\n    <style id='while-loading'>\n{loading}    </style>"
    page = index_html().replace("<body>", f"<body>\n    {styles}")
    return page.replace("</head>", "".join(f"  {line}\n  " for line in lines) + "</head>")


def _addresses(names: Collection[str]) -> list[str]:
    """Addresses of our scripts; a file that is missing or damaged is reported where it is needed, not here."""
    try:
        return [script(name).address for name in names]
    except AssetError:
        return []
