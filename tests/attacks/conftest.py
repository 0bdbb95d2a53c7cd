"""The hosted server that is attacked, and windows to attack it from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.serving import HOSTED, Server, running
from tests.browser.conftest import browser, page

__all__ = ["browser", "page", "server"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("hosted"), HOSTED) as running_server:
        yield running_server
