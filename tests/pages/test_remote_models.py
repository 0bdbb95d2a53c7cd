"""Every page that asks a model, with all models on another machine: it shows what it shows with the models here."""

import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from serving.compute.cache import LRUCache
from serving.compute.slots import reset_singletons
from serving.requests.models import ModelRegistry
from serving.runners.remote import ModelServer, RemoteRunner
from tests.pages.reading import alts, claims, texts
from tests.serving.runners.worker_functions import Wire
from tests.viz_core.hub.families import build_all

OpenPage = Callable[..., AppTest]

pytestmark = pytest.mark.usefixtures("offline_lab")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("gpt2", "t5", "vit"), tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    reset_singletons()
    yield
    reset_singletons()


@pytest.fixture
def remote_models(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Wire]:
    """From now on, this process has no model to run: all are asked over a wire, which is returned."""

    def move() -> Wire:
        wire = Wire(ModelServer(ModelRegistry(), LRUCache(100, 2**26)))
        pool = types.ModuleType("serving.runners.ray_serve")
        pool.on_serve = lambda _address, cache: RemoteRunner(wire, cache)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "serving.runners.ray_serve", pool)
        monkeypatch.setenv("ATLAS_RUNNER", "serve")
        reset_singletons()
        st.cache_data.clear()
        return wire

    return move


def shown(app: AppTest) -> tuple[str, list[str], list[str]]:
    """What a page says and draws: its texts, its claims, and what its figures are for who cannot see them."""
    return texts(app), claims(app), alts(app)


def test_the_vision_chapter(open_page: OpenPage, remote_models: Callable[[], Wire]) -> None:
    parameters = {"vt-lab": "vit", "vt-section": "All heads", "pin": "q7", "head": "encoder-self.0.1"}
    local = shown(open_page("vision-transformer", **parameters))
    wire = remote_models()
    assert shown(open_page("vision-transformer", **parameters)) == local
    assert local[1]
    assert {"evaluate_model", "outline"} <= {question for question, _ in wire.received}


def test_the_model_lab(open_page: OpenPage, remote_models: Callable[[], Wire]) -> None:
    parameters = {"ml-model": "t5", "ml-section": "The next words", "ml-new": "3", "ml-second": "A dog."}
    local = shown(open_page("model-lab", **parameters))
    wire = remote_models()
    remote = shown(open_page("model-lab", **parameters))
    assert remote == local
    assert local[1]
    assert {"load", "evaluate_model", "outline"} <= {question for question, _ in wire.received}
