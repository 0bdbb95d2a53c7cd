"""The hosted profile: protections that may not be lost, and options that Streamlit knows."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from streamlit import config

from serving.environment import profile

DEVELOPMENT = Path(__file__).resolve().parents[3] / ".streamlit" / "config.toml"


def test_streamlit_knows_every_option() -> None:
    assert profile({})
    assert set(profile({})) <= set(config._config_options_template)


def test_strangers_see_no_details_and_send_little() -> None:
    options = profile({})
    assert options["client.showErrorDetails"] == "none"
    assert options["client.toolbarMode"] == "viewer"
    assert options["server.fileWatcherType"] == "none"
    assert options["server.enableXsrfProtection"] is True
    assert options["server.enableCORS"] is True
    assert options["server.maxUploadSize"] <= 10
    assert options["server.maxMessageSize"] <= 20


def test_development_hides_details_too() -> None:
    """A platform that starts app.py by itself reads config.toml alone."""
    options = tomllib.loads(DEVELOPMENT.read_text(encoding="utf-8"))
    assert options["client"]["showErrorDetails"] == "none"
    assert options["server"]["maxUploadSize"] <= 10


def test_the_environment_comes_first() -> None:
    environment = {
        "STREAMLIT_SERVER_PORT": "80",
        "STREAMLIT_SERVER_ADDRESS": "127.0.0.1",
        "STREAMLIT_SERVER_ENABLE_CORS": "false",
        "STREAMLIT_SERVER_COOKIE_SECRET": "hidden",
    }
    names = {"server.port": "PORT", "server.address": "ADDRESS", "server.enableCORS": "ENABLE_CORS"}
    variables = {name: f"STREAMLIT_SERVER_{variable}" for name, variable in names.items()}
    wanted = {"server.port": 80, "server.address": "127.0.0.1", "server.enableCORS": False}
    assert profile(variables, environment) == profile({}) | wanted


@pytest.mark.attack("settings")
@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        ("server.port", "many", "a whole number"),
        ("server.port", "8501.5", "a whole number"),
        ("server.port", "true", "a whole number"),
        ("server.headless", "maybe", "true or false"),
        ("server.headless", "1", "true or false"),
        ("client.width", "nine", "a number"),
    ],
)
def test_what_streamlit_cannot_take_is_refused_at_the_start_by_name(name: str, value: str, needed: str) -> None:
    kinds = {"server.port": int, "server.headless": bool, "client.width": float}
    with pytest.raises(SystemExit, match=f"^STREAMLIT_IT: expected {needed}, got "):
        profile({name: "STREAMLIT_IT"}, {"STREAMLIT_IT": value}, kinds)


@pytest.mark.parametrize(("name", "value"), [("server.headless", "False"), ("client.width", "3"), ("x.path", "3")])
def test_what_it_can_take_passes(name: str, value: str) -> None:
    kinds = {"server.headless": bool, "client.width": float, "x.path": str}
    found = profile({name: "STREAMLIT_IT"}, {"STREAMLIT_IT": value}, kinds)
    assert found[name] == {"False": False, "3": 3}[value]
    assert profile({name: "STREAMLIT_IT"}, {"STREAMLIT_IT": ""}, kinds) == profile({}), "empty is as good as none"
