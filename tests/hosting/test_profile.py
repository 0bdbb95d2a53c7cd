"""The hosted profile: protections that may not be lost, and options that Streamlit knows."""

from __future__ import annotations

import tomllib
from pathlib import Path

from streamlit import config

from hosting.profile import profile

DEVELOPMENT = Path(__file__).resolve().parents[2] / ".streamlit" / "config.toml"


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
