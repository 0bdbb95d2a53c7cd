"""The book's loop: on a model of one number, what each step does can be said beforehand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from recipes.book_fit import BATCH_SIZE, fit


class One(nn.Module):
    """A model of one number."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(0.0))


def run(model: One, epochs: int, num_examples: int = 1, **options: float) -> list[dict[str, float]]:
    """Towards w = 3, by steps of 0.1."""

    def loss(rows: Tensor) -> Tensor:
        assert model.training
        sizes.append(len(rows))
        return (model.w - 3) ** 2

    def measure() -> dict[str, float]:
        assert not model.training
        assert not torch.is_grad_enabled()
        return {"w": float(model.w)}

    sizes: list[int] = []
    curve = fit(model, torch.optim.SGD(model.parameters(), lr=0.1), num_examples, loss, measure, epochs, **options)
    assert sum(sizes) == epochs * num_examples
    assert max(sizes) <= BATCH_SIZE == 128
    return curve


def test_every_epoch_has_its_point() -> None:
    assert run(One(), 2) == [
        {"epoch": 1, "train_loss": 9.0, "w": 0.6},
        {"epoch": 2, "train_loss": 5.76, "w": 1.08},  # w + 0.2 (3 - w)
    ]


def test_a_long_gradient_is_cut_to_its_norm() -> None:
    assert run(One(), 1, clip_norm=1.0) == [{"epoch": 1, "train_loss": 9.0, "w": 0.1}]


def test_an_epoch_has_batches_of_at_most_128() -> None:
    assert run(One(), 1, num_examples=300)[0]["w"] == pytest.approx(3 - 3 * 0.8**3, abs=1e-4)


def test_no_epochs_are_refused() -> None:
    with pytest.raises(ValueError, match="epochs: expected at least 1, got 0"):
        run(One(), 0)
