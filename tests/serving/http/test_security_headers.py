"""Headers on every answer, and the routes of Streamlit that are shut."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from serving.http.security_headers import SecurityHeaders, policy

pytestmark = pytest.mark.attack("headers")


def page(_request: Request) -> Response:
    response = PlainTextResponse("page", headers={"X-Content-Type-Options": "guess", "X-Own": "kept"})
    response.set_cookie("_streamlit_xsrf", "2|x", samesite="lax")
    response.set_cookie("other", "y", secure=True)
    return response


def client(frame_ancestors: str = "", address: str = "http://testserver") -> TestClient:
    app = Starlette(routes=[Route("/{path:path}", page)], middleware=[Middleware(SecurityHeaders, frame_ancestors)])
    return TestClient(app, address)


def directives(policy: str) -> dict[str, list[str]]:
    return {name: values for name, *values in (part.split() for part in policy.split(";"))}


HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "SAMEORIGIN",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.mark.parametrize("path", ["/", "/transformer", "/media/x.png", "/_stcore/metrics"])
def test_every_answer_has_them_and_nothing_comes_from_or_goes_elsewhere(path: str) -> None:
    headers = client().get(path).headers
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert path == "/_stcore/metrics" or headers["x-own"] == "kept", "what an answer says else stays"
    allowed = directives(headers["content-security-policy"])
    assert allowed["object-src"] == ["'none'"]
    for name in "default-src script-src connect-src img-src frame-ancestors form-action base-uri".split():
        assert allowed[name][0] == "'self'"
        scripts = {"data:", "'unsafe-inline'"} if name == "script-src" else set()
        assert not ({"*", "http:", "https:", "'unsafe-eval'"} | scripts) & set(allowed[name])


SHUT = ("metrics", "metrics?families=active_sessions", "script-health-check")
SHUT = (*SHUT, "agent/interact", "agent/openapi.json", "agent/mcp")


@pytest.mark.parametrize("path", [*(f"/_stcore/{name}" for name in SHUT), "/base/_stcore/metrics"])
def test_shut(path: str) -> None:
    answer = client().get(path)
    assert (answer.status_code, answer.text) == (404, "not found")


def test_a_script_in_the_page_runs_by_its_digest_alone() -> None:
    page = "<script>alert(1)</script><script type=module src=x></script>"
    scripts = directives(policy(pages=page))["script-src"]
    known = "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI="
    assert [source for source in scripts if "sha" in source] == [f"'{known}'"]


def test_a_site_that_may_frame_it_is_named() -> None:
    headers = client("https://huggingface.co").get("/").headers
    assert directives(headers["content-security-policy"])["frame-ancestors"] == ["'self'", "https://huggingface.co"]
    assert "x-frame-options" not in headers, "it knows no names, and an old browser would refuse all"


def test_pages_may_use_what_they_have_a_control_for_and_no_other_device() -> None:
    permissions = dict(part.split("=") for part in client().get("/").headers["permissions-policy"].split(", "))
    offered = {name for name, who in permissions.items() if who == "(self)"}
    assert offered == {"camera", "microphone", "clipboard-write", "fullscreen"}
    assert {permissions[name] for name in ("geolocation", "payment", "usb")} == {"()"}


def test_who_came_by_tls_comes_by_tls_again_and_so_do_cookies() -> None:
    plain, safe = (client(address=f"{scheme}://testserver").get("/").headers for scheme in ("http", "https"))
    assert "strict-transport-security" not in plain
    assert int(safe["strict-transport-security"].removeprefix("max-age=")) >= 180 * 24 * 3600
    assert ["Secure" in cookie for cookie in plain.get_list("set-cookie")] == [False, True]
    assert [cookie.count("Secure") for cookie in safe.get_list("set-cookie")] == [1, 1]
    assert all("samesite=lax" in cookie.lower() for cookie in safe.get_list("set-cookie"))
