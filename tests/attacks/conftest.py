"""The hosted server that is attacked, and windows to attack it from."""

from collections.abc import Iterator

import pytest

from benchmarks.serving import HOSTED, Server
from tests.browser.conftest import browser, page
from tests.shared_server import shared_server

__all__ = ["browser", "page", "server"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"ATLAS_WORKERS": "1", "HOME": "/proc/nowhere"}  # where nobody can write, not even root
    with shared_server(HOSTED, tmp_path_factory, settings) as running_server:
        yield running_server
