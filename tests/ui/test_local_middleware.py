"""At home a server answers to this machine's names, unless Streamlit's check of origins is turned off."""

from __future__ import annotations

import socket

import pytest
from streamlit import config

from ui.app import local_middleware

pytestmark = pytest.mark.attack("cross-site")


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Streamlit's options, as the test sets them."""
    given: dict[str, object] = {
        "server.enableCORS": True,
        "server.allowedHosts": [],
        "server.corsAllowedOrigins": ["https://atlas.example"],
        "server.address": "localhost",
        "browser.serverAddress": None,
    }
    monkeypatch.setattr(config, "get_option", given.__getitem__)
    return given


def test_the_names_of_this_machine_and_what_is_set(options: dict[str, object]) -> None:
    options["server.allowedHosts"] = ["lab.example"]
    names = local_middleware._own_names()
    assert names is not None
    assert {socket.gethostname(), "lab.example"} <= set(names)
    assert local_middleware._trusted_origins() == ["https://atlas.example"]


def test_a_public_app_answers_to_any_name(options: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    assert local_middleware._own_names() is None
    assert local_middleware._trusted_origins() is not None


def test_who_turns_streamlits_check_off_turns_this_off(options: dict[str, object]) -> None:
    options["server.enableCORS"] = False
    assert local_middleware._own_names() is None
    assert local_middleware._trusted_origins() is None
