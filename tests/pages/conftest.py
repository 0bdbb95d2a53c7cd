"""Pages run through Streamlit's AppTest: the whole app, one chapter open, no browser."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from huggingface_hub import constants
from streamlit.testing.v1 import AppTest

from serving.compute.slots import reset_singletons
from tests.tiny_models import COLOUR, GREY, write_tiny_vit
from tests.visits import Visits, open_chapter
from ui.compute.slots import results
from viz_core.pretrained import shipped


def forget_models() -> None:
    """What the process and the pages keep of models that were there."""
    reset_singletons()
    st.cache_resource.clear()


def forget_listed_models() -> None:
    for key in [key for key in results()._entries if isinstance(key, tuple) and key[0] == "local_model_names"]:
        results()._remove(key)


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
    forget_listed_models()
    yield
    forget_listed_models()


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
    """A page of a test's own, to change: see `open_chapter`."""
    return open_chapter


@pytest.fixture(scope="session")
def visits() -> Visits:
    """Pages that are only read, each opened once."""
    return Visits()
