"""The model lab before a Hub of our own: what comes, and a sentence for all that may not or cannot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from huggingface_hub import constants
from streamlit.testing.v1 import AppTest

from serving.compute.slots import reset_singletons
from tests.pages.reading import claims, texts
from tests.viz_core.hub.fake_hub import COMMIT, FakeHub, serving, use_only
from tests.viz_core.hub.families import build

OpenPage = Callable[..., AppTest]
NAME = "someone/model"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("gpt2")
    build("gpt2", folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """An empty cache, no folder, and a Hub with whatever a test puts there."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(tmp_path / "none"))
    monkeypatch.delenv("ATLAS_MODELS", raising=False)
    st.cache_data.clear()
    reset_singletons()
    fake = FakeHub()
    with serving(fake) as address:
        use_only(address, monkeypatch)
        yield fake
    st.cache_data.clear()
    reset_singletons()


def open_model(open_page: OpenPage, **parameters: str) -> AppTest:
    app = open_page("model-lab", **{"ml-source": "Type a name", "ml-name": NAME, "ml-start": "The cat", **parameters})
    assert f"{NAME} is not on this machine" in texts(app)
    return app.button[0].click().run()


def test_a_model_is_downloaded_after_a_click_and_its_commit_is_shown(
    open_page: OpenPage, hub: FakeHub, files: dict[str, bytes]
) -> None:
    hub.repos[NAME] = files
    app = open_model(open_page)
    assert all("equally many tokens" in warning.value for warning in app.warning), (
        "of two sentences, whatever the model"
    )
    assert not app.exception
    assert COMMIT in texts(app)
    assert claims(app)
    num_requests = len(hub.requests)
    st.cache_data.clear()
    again = open_page("model-lab", **{"ml-source": "Type a name", "ml-name": NAME, "ml-start": "The cat"})
    assert claims(again), "what came once needs no click"
    assert len(hub.requests) == num_requests


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (404, "RepoNotFound", "no model someone/model on the Hub, or it is private"),
        (401, "RepoNotFound", "no model someone/model on the Hub, or it is private"),
        (403, "GatedRepo", "accept terms first"),
        (500, "", "cannot be reached now"),
    ],
)
def test_missing_private_gated_and_a_hub_that_is_ill(
    open_page: OpenPage, hub: FakeHub, status: int, code: str, message: str
) -> None:
    hub.errors[NAME] = (status, code)
    app = open_model(open_page)
    assert message in texts(app)
    assert not claims(app)
    assert app.text_input(key="ml-name").value == NAME


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.safetensors": None, "pytorch_model.bin": b"pickle"}, "only as a pickle"),
        ({"config.json": json.dumps({"model_type": "never-heard-of"}).encode()}, "does not know"),
        ({"config.json": b"{"}, "config.json"),
        ({"model.safetensors": b"\x10\x00\x00\x00\x00\x00\x00\x00{broken"}, "model.safetensors"),
        (
            {"config.json": json.dumps({"model_type": "mamba", "architectures": ["MambaForCausalLM"]}).encode()},
            "attention",
        ),
    ],
)
def test_what_cannot_be_shown_is_a_sentence_and_the_session_goes_on(
    open_page: OpenPage, hub: FakeHub, files: dict[str, bytes], changes: dict[str, bytes | None], message: str
) -> None:
    hub.repos[NAME] = {name: content for name, content in {**files, **changes}.items() if content is not None}
    hub.repos["someone/good"] = files
    app = open_model(open_page)
    assert message in texts(app)
    assert app.warning
    assert not claims(app)
    app.text_input(key="ml-name").set_value("someone/good").run()
    app.button[0].click().run()
    assert claims(app)
