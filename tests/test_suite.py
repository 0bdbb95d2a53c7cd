"""What holds for every test: none fails because the machine is busy."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def test_no_example_is_too_slow() -> None:
    assert settings.default is not None
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check
