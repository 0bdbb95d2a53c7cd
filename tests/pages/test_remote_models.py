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
from tests.serving.runners.wire import Wire
from tests.tiny_models import COLOUR, GREY, write_tiny_vit
from tests.viz_core.hub.families import build_all
from viz_core.pretrained import shipped

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


@pytest.mark.parametrize(("model", "section"), [({"vt-model": COLOUR}, "Patch lab"), ({"vt-lab": "vit"}, "All heads")])
def test_the_vision_chapter(
    open_page: OpenPage,
    remote_models: Callable[[], Wire],
    model: dict[str, str],
    section: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (GREY, COLOUR):
        write_tiny_vit(tmp_path / "shipped", name)
    monkeypatch.setattr(shipped, "CHECKPOINTS", tmp_path / "shipped")
    parameters = {**model, "vt-section": section, "pin": "q7", "head": "encoder-self.0.1"}
    local = shown(open_page("vision-transformer", **parameters))
    wire = remote_models()
    remote = shown(open_page("vision-transformer", **parameters))
    assert remote == local
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


@pytest.mark.parametrize(("chapter", "question"), [("transformer", "outline"), ("model-lab", "evaluate_model")])
def test_a_pool_without_room_is_a_sentence_and_a_button(
    open_page: OpenPage, remote_models: Callable[[], Wire], chapter: str, question: str
) -> None:
    wire = remote_models()
    wire.refuses.add(question)
    app = open_page(chapter, **{"open-all": "false"})
    assert ["The server is busy" in warning.value for warning in app.warning] == [True]
    wire.refuses.clear()
    app.button(key="try-again").click().run()
    assert not app.exception
    assert claims(app)


def test_the_chapter_of_two_shipped_models(open_page: OpenPage, remote_models: Callable[[], Wire]) -> None:
    local = shown(open_page("bahdanau"))
    wire = remote_models()
    assert shown(open_page("bahdanau")) == local
    assert wire.received


def test_errors_are_those_of_this_process(open_page: OpenPage, remote_models: Callable[[], Wire]) -> None:
    parameters = {"ml-model": "gpt2", "ml-start": " ", "open-all": "false"}
    local = texts(open_page("model-lab", **parameters))
    remote_models()
    assert texts(open_page("model-lab", **parameters)) == local
    assert "nothing to read" in local
