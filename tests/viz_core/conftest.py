"""Blocks of every size for what is computed block by block."""

import pytest

from tests.viz_core.trace.attention_cases import B, H, K
from viz_core.trace import source as recorded_module


@pytest.fixture(params=[1, 3 * H * B * K], ids=["row by row", "three rows"])
def block_budget(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one row, and of three rows; one block holds everything elsewhere."""
    monkeypatch.setattr(recorded_module, "_BLOCK_SCORES", request.param)
