"""The table of measured architectures against the models themselves."""

from __future__ import annotations

import pytest

from tests.viz_core.hub.measured_table import ARCHITECTURES, measure, written_rows


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_row_is_what_is_measured(architecture: str) -> None:
    found, written = measure(architecture), written_rows()[architecture]
    assert found.residual < 1e-6
    residual = written.rstrip(" |").rpartition("| ")[2]
    assert float(residual) < 1e-6
    assert written == found.row(architecture, residual)


def test_the_table_has_many_architectures_and_each_is_tested() -> None:
    assert len(ARCHITECTURES) >= 25
    assert {*written_rows()} == {*ARCHITECTURES}
