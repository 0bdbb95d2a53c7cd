"""Who knows the id of a session is not its owner: the browser whose cookie opened it is."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from ui.streamlit_internals.sessions import HEADER, browser_of, identify

pytestmark = pytest.mark.attack("sessions")
TOKEN = bytes(range(16))


def scope(cookie: str = "", *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    own = [(b"cookie", cookie.encode())] if cookie else []
    return {"type": "websocket", "headers": [*own, *headers]}


def cookie(token: bytes) -> str:
    return f"other=1; _streamlit_xsrf={generate_xsrf_token_string(token)}"


def header(found: Any) -> list[bytes]:
    return [value for name, value in found["headers"] if name == HEADER]


def test_a_browser_is_the_same_after_its_cookie_is_masked_again() -> None:
    one, again, other = (header(identify(scope(cookie(token)))) for token in (TOKEN, TOKEN, TOKEN[::-1]))
    assert one == again
    assert one != other
    assert one == [str(browser_of(scope(cookie(TOKEN)))).encode()]


@pytest.mark.parametrize("name", [b"x-atlas-browser", b"X-Atlas-Browser"])
def test_nobody_names_their_browser_themselves(name: bytes) -> None:
    (browser,) = header(identify(scope(cookie(TOKEN), (name, b"somebody"))))
    assert browser != b"somebody"


@pytest.mark.parametrize(
    "sent", ["", "a=1", "_streamlit_xsrf=", "_streamlit_xsrf=2|x|y|z", '_streamlit_xsrf="', "=;\xff"]
)
def test_without_a_valid_cookie_each_handshake_is_somebody_else(sent: str) -> None:
    assert browser_of(scope(sent)) is None
    assert header(identify(scope(sent))) != header(identify(scope(sent)))
