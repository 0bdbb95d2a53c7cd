"""BertViz in an open page, as in a notebook: ask for a view, and Python makes it and the page shows it.

`python -m benchmarks.peers.bertviz_page PORT` serves a page with d3 and jQuery loaded, from this machine. Its function
`show(name, n)` fetches `/view?name=model_view&n=128` and puts it into the page. The maps are those of our page.
"""

import importlib.util
import re
import sys
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import bertviz
from torch import Tensor

from benchmarks.random_models import random_trace

# What BertViz asks of RequireJS, where both scripts are there already.
PAGE = """<!doctype html><meta charset="utf-8"><title>BertViz</title>
<script src="/jquery.js"></script><script src="/d3.js"></script>
<script>
window.require = { config() {} };
window.requirejs = (names, run) => run(window.jQuery, window.d3);
async function show(name, n) {
  const html = await (await fetch(`/view?name=${name}&n=${n}`)).text();
  window.received = html.length;
  document.querySelector("#cell").append(document.createRange().createContextualFragment(html));
}
</script><div id="cell"></div>
"""
SCRIPTS = {"/jquery.js": ("xstatic.pkg.jquery", "data/jquery.min.js"), "/d3.js": ("mpld3", "js/d3.v5.min.js")}
FROM_A_NETWORK = re.compile(r'<script src="https?://[^"]*"></script>')


@lru_cache(maxsize=1)
def maps(n: int) -> list[Tensor]:
    return [call.weights() for call in random_trace(n)]


def view(name: str, n: int) -> str:
    """The HTML that BertViz gives for 12 layers of 12 heads, without the script that comes from a network."""
    make = {"model_view": bertviz.model_view, "head_view": bertviz.head_view}[name]
    made = make(maps(n), [f"w{i}" for i in range(n)], html_action="return")
    return FROM_A_NETWORK.sub("", made.data)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        url = urlsplit(self.path)
        wanted = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path in SCRIPTS:
            self._answer("text/javascript", _packaged(*SCRIPTS[url.path]))
        elif url.path == "/prepare":
            maps(int(wanted["n"]))
            self._answer("text/plain", b"ready")
        elif url.path == "/view":
            self._answer("text/html", view(wanted["name"], int(wanted["n"])).encode())
        else:
            self._answer("text/html", PAGE.encode())

    def _answer(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _packaged(package: str, file: str) -> bytes:
    """A file of an installed package, which is not imported: it may lack what it would import."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or []) if spec else []
    if not places:
        raise FileNotFoundError(f"{package} is not installed; see requirements-bench.txt")
    return (Path(places[0]) / file).read_bytes()


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
