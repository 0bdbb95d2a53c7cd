"""What the tests of positions share."""

from __future__ import annotations

from collections.abc import Iterator

import jaxtyping
import pytest


@pytest.fixture
def shapes_unchecked() -> Iterator[None]:
    """A shape checker around the library would refuse a wrong shape first; this lets our own error speak."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)
