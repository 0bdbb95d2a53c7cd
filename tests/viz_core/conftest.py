"""Blocks of every size for what is computed block by block, and a vision transformer small enough for loops."""

import pytest
import torch

from tests.viz_core.trace.attention_cases import B, H, K
from viz_core.models.vit import ViT
from viz_core.trace import source as recorded_module


@pytest.fixture(params=[1, 3 * H * B * K], ids=["row by row", "three rows"])
def block_budget(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one row, and of three rows; one block holds everything elsewhere."""
    monkeypatch.setattr(recorded_module, "_BLOCK_SCORES", request.param)


@pytest.fixture
def model() -> ViT:
    """Two layers over four patches."""
    torch.manual_seed(3)
    model = ViT(6, 3, 8, 12, 2, 2, 0.0, 0.0, num_classes=3, num_channels=1).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.fixture
def picture() -> torch.Tensor:
    return torch.randn(1, 1, 6, 6, generator=torch.Generator().manual_seed(4))
