"""Before the first visitor comes: what a server has loaded and used, and what it says of what it could not load."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serving.compute.singleton import reset_singletons
from serving.models.model_spec import ShippedClassifier, ShippedTranslator
from serving.requests.hub import HubModelSpec
from tests.viz_core.hub.families import build_all
from ui.app.warm_up import load_later, warm_up
from ui.compute.models import registry
from ui.compute.slots import results
from viz_core.pretrained import available


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    reset_singletons()
    yield
    reset_singletons()


def test_the_lab_models_that_are_offered_are_loaded_and_one_that_is_missing_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(build_all(("bert",), tmp_path)))
    monkeypatch.setenv("ATLAS_MODELS", "../nonsense,bert")
    with caplog.at_level(logging.WARNING, "atlas"):
        warm_up()
    assert len(caplog.records) == 1
    event: Any = caplog.records[0].msg
    assert event["model"] == "../nonsense"
    assert HubModelSpec("bert") in registry()
    assert HubModelSpec("../nonsense") not in registry()
    for task, spec in (("translation", ShippedTranslator), ("classification", ShippedClassifier)):
        assert all(spec(card.name) in registry() for card in available(task=task))
    assert len(results()) >= len(available())


def test_the_labs_library_comes_once_the_first_pages_have_gone_out(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr("ui.app.warm_up.time.sleep", calls.append)
    monkeypatch.setattr("serving.requests.hub.import_transformers", lambda: calls.append("transformers"))
    load_later()
    assert calls == [20.0, "transformers"]
