"""Nothing a stranger writes is obeyed by another browser or by the server."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from benchmarks.serving import Server
from tests.attacks.in_browser import attacks
from tests.attacks.over_http import Attack


@pytest.mark.parametrize(
    "attack", [pytest.param(attack, id=attack.how, marks=pytest.mark.attack(attack.target)) for attack in attacks()]
)
def test_not_obeyed(attack: Attack, page: Page, server: Server) -> None:
    attack.run(page, server.url)
