"""Models in this process, and the same behind a wire."""

from __future__ import annotations

import pytest

from asking.model_spec import Models
from asking.runner import Here
from hosting.cache import Kept
from tests.asking.wire import Wire


@pytest.fixture
def here() -> Here:
    return Here(Models(), Kept(100, 2**24))


@pytest.fixture
def wire() -> Wire:
    """To a machine of its own: what was asked here, it has not seen."""
    return Wire(Here(Models(), Kept(100, 2**24)))
