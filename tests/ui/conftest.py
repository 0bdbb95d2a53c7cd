"""Fixtures for the tests of what chapters share."""

from tests import app_test  # noqa: F401
