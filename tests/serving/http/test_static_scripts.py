"""Scripts that a browser keeps: under an address that changes with them, packed, wherever the app is served."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import plotly
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from serving.http.static_scripts import PLOTLY, PLOTLY_FILE, routes, script
from viz_core.view.components import COMPONENTS

ROOT = Path(__file__).resolve().parents[3]
NAMES = sorted(path.parent.name for path in COMPONENTS.glob("*/main.js"))


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=list(routes())))


@pytest.mark.parametrize("name", [PLOTLY, *NAMES])
def test_a_script_is_kept_for_good_under_an_address_with_its_digest(client: TestClient, name: str) -> None:
    found = script(name)
    digest = hashlib.sha256(found.code).hexdigest()
    assert found.address == f"atlas/{name}-{digest[:16]}.js"
    answer = client.get(f"/{found.address}")
    assert (answer.status_code, answer.content) == (200, found.code)
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_it_comes_packed_to_who_can_unpack_it(client: TestClient) -> None:
    found = script(PLOTLY)
    with client.stream("GET", f"/{found.address}", headers={"Accept-Encoding": "br, gzip"}) as answer:
        raw = b"".join(answer.iter_raw())
        assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw) == found.code
    assert len(raw) < len(found.code) / 2
    plain = client.get(f"/{found.address}", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.headers["vary"] == answer.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", ["", "/class", "/a/b"])
def test_under_whatever_path_the_app_is_served(client: TestClient, path: str) -> None:
    address = script("chart").address
    assert client.get(f"{path}/{address}").status_code == 200
    mounted = TestClient(Starlette(routes=[Mount("/tools", routes=list(routes()))]))
    assert mounted.get(f"/tools{path}/{address}").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "atlas/chart-0000000000000000.js",  # another version
        "atlas/nobody-0000000000000000.js",
        "atlas/shared-0000000000000000.js",  # a folder, but no component
        "atlas/..%2Fchart-0000000000000000.js",
        "atlas/chart-.js",
        "atlas/chart.js",
        "atlas/",
    ],
)
def test_nothing_else_is_answered(client: TestClient, path: str) -> None:
    assert client.get(f"/{path}").status_code == 404
    with pytest.raises(ValueError, match="expected one of attention_view, chart, .*, plotly, .*, got 'nobody'"):
        script("nobody")


def test_plotly_is_what_its_readme_says_and_pythons_own_version() -> None:
    readme = (PLOTLY_FILE.parent / "README.md").read_text(encoding="utf-8")
    (stated,) = re.findall(r"^ +([0-9a-f]{64})$", readme, re.MULTILINE)
    assert hashlib.sha256(PLOTLY_FILE.read_bytes()).hexdigest() == stated
    (fetched,) = set(re.findall(r"plotly\.js[@ ]v?(\d+\.\d+\.\d+)", readme))
    whole = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    for file in (PLOTLY_FILE, whole):
        assert f"v{fetched}" in file.read_text(encoding="utf-8")[:200]
    assert "MIT" in (PLOTLY_FILE.parent / "LICENSE").read_text(encoding="utf-8")


def test_plotly_can_draw_all_that_figures_ask_for() -> None:
    names = (PLOTLY_FILE.parent / "figures.js").read_text(encoding="utf-8")
    drawn = {"scatter", *re.findall(r"plotly\.js/lib/(\w+)", names)} - {"core"}
    used = set()
    for folder in ("pages", "ui", "viz_core"):
        for path in (ROOT / folder).rglob("*.py"):
            used |= set(re.findall(r"\bgo\.([A-Z]\w+)\(", path.read_text(encoding="utf-8")))
    assert {name.lower() for name in used} - {"figure", "frame", "layout"} == drawn
