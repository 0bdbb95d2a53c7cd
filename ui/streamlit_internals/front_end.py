"""Streamlit's own front end: the page it starts from, and the names of its scripts."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.util import calc_hash

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

_STATIC = Path(st.__file__).parent / "static"
STATIC_FILES = _STATIC / "static"
"""The folder of scripts, styles and fonts, in folders by kind."""
_IMPORTED = re.compile(r"""(?:from|import)["'`]\./([\w.-]+\.js)["'`]""")
_HEAD = 4096  # characters of a script, in which its imports stand
CONNECT_AT_ONCE = """<script>
      // Streamlit asks for its server's health first, at a chapter's address in vain, and opens its socket after that;
      // so it does both at once. Nobody but this very site may steer the page.
      window.__streamlit = {
        BACKEND_BASE_URL: new URL("./", location.href).href,
        HOST_CONFIG: { allowedOrigins: [location.origin], useExternalAuthToken: false },
      };
    </script>"""
NUMBERS_OF_PAGE = """<script>
      // Streamlit writes numbers as the first of navigator.languages does: here, as the language of the page does.
      (function () {
        const own = navigator.languages;
        const get = () => (document.documentElement.lang ? [document.documentElement.lang, ...own] : own);
        Object.defineProperty(navigator, "languages", { configurable: true, get });
        // And a number below zero has a minus sign, where CLDR has a hyphen.
        const of = Object.getOwnPropertyDescriptor(Intl.NumberFormat.prototype, "format").get;
        const signed = (write) => (number) => write(number).replace("-", "−");
        const format = { configurable: true, get() { return signed(of.call(this)); } };
        Object.defineProperty(Intl.NumberFormat.prototype, "format", format);
      })();
    </script>"""
NOTHING_JUMPS = """<script>
      // While a page loads, what is below something that has no height yet is hidden (assets/components/loading.css),
      // until all of it is there or the visitor does something. And the sidebar, which comes late, keeps its place.
      (function (root, once) {
        const LATE = '[data-testid="stSkeleton"], [data-testid^="stBidiComponent"]:not([data-settled])';
        let waiting = new Set();
        const mark = () => {
          const around = new Set();
          for (const late of document.querySelectorAll(`.stMain :is(${LATE})`)) {
            if (late.closest(".st-key-scripts")) continue;
            for (let at = late.parentElement; !at.matches(".stMain"); at = at.parentElement) around.add(at);
          }
          for (const each of waiting) if (!around.has(each)) delete each.dataset.waiting;
          for (const each of around) if (!waiting.has(each)) each.dataset.waiting = "";
          waiting = around;
        };
        const observer = new MutationObserver(mark);
        observer.observe(root, { subtree: true, childList: true, attributeFilter: ["data-settled"] });
        const settle = () => {
          observer.disconnect();
          delete root.dataset.loading;
          document.getElementById("while-loading")?.remove();
        };
        root.dataset.loading = "";
        for (const input of ["pointerdown", "keydown", "wheel"]) addEventListener(input, settle, once);
        (function wait(quiet) {
          const drawn = document.querySelector('.stApp[data-test-script-state="notRunning"] .stMain h1');
          const rests = drawn && !document.querySelector('[data-testid="stSkeleton"]');
          if (quiet < 8) setTimeout(wait, 250, rests ? quiet + 1 : 0);
          else settle();
        })(0);
        try {
          const collapsed = ([name, is]) => name.startsWith("stSidebarCollapsed-") && is === "true";
          const closed = Object.entries(localStorage).some(collapsed);
          const width = closed ? 0 : parseInt(localStorage.getItem("sidebarWidth")) || 300;
          root.style.setProperty("--sidebar-to-come", `${width}px`);
        } catch {} // a browser that keeps nothing
      })(document.documentElement, { once: true, capture: true });
    </script>"""
CHOSEN_IN_SIGHT = """<script>
      // Keep the chosen option of a row that scrolls in view: at first, and when another is chosen.
      (function (shown, timer) {
        const seek = () => {
          timer = null;
          for (const row of document.querySelectorAll('.stMain [role="radiogroup"]')) {
            const chosen = row.querySelector('[aria-checked="true"], [data-selected]');
            if (!chosen || !row.clientWidth || shown.get(row) === chosen) continue;
            shown.set(row, chosen);
            const [all, own] = [row, chosen].map((node) => node.getBoundingClientRect());
            const offCentre = (own.left + own.right - all.left - all.right) / 2;
            if (own.left < all.left || own.right > all.right) row.scrollLeft += offCentre;
          }
        };
        new MutationObserver(() => (timer ??= setTimeout(seek, 150))).observe(document, {
          subtree: true, childList: true, attributeFilter: ["aria-checked", "data-selected"],
        });
      })(new WeakMap(), null);
    </script>"""
SERVER_GONE = """<script>
      // A page whose server went says so in place of Streamlit's dialog (assets/components/app.css), which is English.
      // Streamlit comes back by itself, with all that was typed.
      (function (root, sentences) {
        const bar = Object.assign(document.createElement("p"), { id: "server-gone" });
        bar.setAttribute("role", "status");
        let connected = false, lost = 0;
        setInterval(() => {
          const state = document.querySelector(".stApp")?.dataset.testConnectionState;
          connected ||= state === "CONNECTED";
          lost = connected && state !== "CONNECTED" ? lost + 1 : 0;
          if (lost < 2) return bar.remove(), delete root.dataset.serverGone;
          root.dataset.serverGone = "";
          bar.textContent = sentences[root.lang] ?? sentences.en;
          document.body.append(bar);
        }, 500);
      })(document.documentElement, SENTENCES);
    </script>"""
READ_LATER = """<script>
      // A page that has asked the server for its chapter has nothing to do until the answer comes.
      (function wait() {
        if (document.querySelector(".stApp")?.dataset.testConnectionState !== "CONNECTED") return setTimeout(wait, 10);
        for (const { href, rel } of document.querySelectorAll("link[data-read]")) {
          if (rel === "modulepreload") {
            import(href).catch(() => {}); // whoever needs it says what is wrong with it
            continue;
          }
          const script = Object.assign(document.createElement("script"), { src: href, onerror: () => script.remove() });
          document.head.append(script);
        }
      })();
    </script>"""


def index_html() -> str:
    """The page that Streamlit's server would send."""
    return (_STATIC / "index.html").read_text(encoding="utf-8")


def has_chunk(name: str) -> bool:
    """Whether the front end has a script of this name, which is followed by a digest in that of its file."""
    return any((STATIC_FILES / "js").glob(f"{name}.*.js"))


def chunks(names: Collection[str]) -> list[str]:
    """The files of these scripts and all that they import, without those that `index_html` names itself."""
    page, found = index_html(), dict[str, None]()
    ahead = [path.name for name in names for path in (STATIC_FILES / "js").glob(f"{name}.*.js")]
    while ahead:
        name = ahead.pop(0)
        if name not in found and name not in page:
            found[name] = None
            with (STATIC_FILES / "js" / name).open(encoding="utf-8") as file:
                ahead += _IMPORTED.findall(file.read(_HEAD))
    return list(found)


def follow_link(app: AppTest, chapter: str) -> AppTest:
    """Open a chapter without a browser, as one does that follows a link: `switch_page` can after a first run only."""
    app._page_hash = calc_hash(chapter)
    return app
