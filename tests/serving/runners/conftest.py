"""Models in this process, and the same behind a wire."""

from __future__ import annotations

import pytest

from serving.compute.cache import LRUCache
from serving.requests.models import ModelRegistry
from serving.runners.remote import ModelServer, RemoteRunner
from serving.runners.runner import LocalRunner
from tests.serving.runners.wire import Wire


@pytest.fixture
def local() -> LocalRunner:
    return LocalRunner(ModelRegistry(), LRUCache(100, 2**24))


@pytest.fixture
def wire() -> Wire:
    """To a machine of its own: what was asked here, it has not seen."""
    return Wire(ModelServer(ModelRegistry(), LRUCache(100, 2**24)))


@pytest.fixture
def remote(wire: Wire) -> RemoteRunner:
    return RemoteRunner(wire, LRUCache(100, 2**24))
