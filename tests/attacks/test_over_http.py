"""Every request of the corpus is refused, nothing leaks, and the server stands."""

from __future__ import annotations

import urllib.request

import pytest

from benchmarks.serving import Server
from tests.attacks.over_http import Attack, attacks


@pytest.mark.parametrize(
    "attack", [pytest.param(attack, id=attack.how, marks=pytest.mark.attack(attack.target)) for attack in attacks()]
)
def test_refused(attack: Attack, server: Server) -> None:
    attack.run(server.url)
    with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=60) as answer:
        assert answer.status == 200
