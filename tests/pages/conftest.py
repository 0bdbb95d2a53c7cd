"""Pages run through Streamlit's AppTest: the whole app, one chapter open, no browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from huggingface_hub import constants
from streamlit import config
from streamlit.testing.v1 import AppTest

from serving.compute.slots import reset_singletons
from tests import app_test  # noqa: F401
from tests.pages.reading import follow_link
from tests.tiny_vit import COLOUR, GREY, write_tiny_vit
from viz_core.pretrained import shipped

ROOT = Path(__file__).resolve().parents[2]


def forget_models() -> None:
    """What the process and the pages keep of models that were there."""
    reset_singletons()
    st.cache_resource.clear()


@pytest.fixture
def no_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder where the shipped models should be; no cached model gets in its way."""
    monkeypatch.setattr(shipped, "CHECKPOINTS", tmp_path)
    forget_models()
    yield tmp_path
    forget_models()


@pytest.fixture
def offline_lab(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A lab whose host allows `folders`, which a test file makes; an empty cache, and nobody to ask."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(folders))
    monkeypatch.delenv("ATLAS_MODELS", raising=False)
    st.cache_data.clear()
    yield
    st.cache_data.clear()


@pytest.fixture(scope="session")
def vision_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two small vision models, named as those that ship."""
    folder = tmp_path_factory.mktemp("checkpoints")
    write_tiny_vit(folder, GREY)
    write_tiny_vit(folder, COLOUR)
    return folder


@pytest.fixture
def small_vision_models(vision_checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The two small models in place of those that ship."""
    monkeypatch.setattr(shipped, "CHECKPOINTS", vision_checkpoints)
    forget_models()
    yield
    forget_models()


@pytest.fixture(scope="session")
def open_page() -> Callable[..., AppTest]:
    """open_page("transformer", **query_params): the app with that chapter open, run once without an exception.

    All its sections are open, as with the switch "Open all", unless `open-all` is given.
    """

    def run(chapter: str, **query_params: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "ui" / "app" / "main.py"), default_timeout=120)
        for name, value in (({} if chapter == "home" else {"open-all": "true"}) | query_params).items():
            app.query_params[name] = value
        if chapter != "home":
            follow_link(app, chapter)
        config.set_option("client.showErrorDetails", "full")  # a page that fails says why
        app.run()
        assert not app.exception, [error.message for error in app.exception]
        return app

    return run
