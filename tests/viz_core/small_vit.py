"""A two-layer ViT over four patches, small enough to work out by loops."""

import pytest
import torch

from viz_core.models.vit import ViT


@pytest.fixture
def model() -> ViT:
    torch.manual_seed(3)
    model = ViT(6, 3, 8, 12, 2, 2, 0.0, 0.0, num_classes=3, num_channels=1).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.fixture
def picture() -> torch.Tensor:
    return torch.randn(1, 1, 6, 6, generator=torch.Generator().manual_seed(4))
