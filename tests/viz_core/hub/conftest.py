"""Tiny models of every family, each written and loaded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.viz_core.hub.families import build
from viz_core.hub import HubModel, load_hub


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model of a family; made when first asked for. Read only."""

    @cache
    def folder(family: str) -> Path:
        path = tmp_path_factory.mktemp("hub") / family
        path.mkdir()
        build(family, path)
        return path

    return folder


@pytest.fixture(scope="session")
def tiny_model(tiny: Callable[[str], Path]) -> Callable[[str], HubModel]:
    """A tiny model, loaded once."""

    @cache
    def model(family: str) -> HubModel:
        return load_hub(tiny(family), device="cpu")

    return model


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty cache, and nobody to ask."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
