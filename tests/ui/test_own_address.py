"""A foreign origin is refused without an outgoing request."""

from __future__ import annotations

import pytest
from streamlit import net_util
from streamlit.web.server.server_util import is_url_from_allowed_origins

from ui.streamlit_internals.script_run import forbid_address_lookup


@pytest.mark.attack("sockets")
def test_a_foreign_origin_is_refused_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[object] = []
    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)  # given back after the test
    monkeypatch.setattr("socket.getaddrinfo", lambda *to, **_how: requests.append(to) or [])
    forbid_address_lookup()
    assert not is_url_from_allowed_origins("https://evil.example")
    assert requests == []
