"""Waves of an embedding: by hand, and against sums of sines written out."""

from __future__ import annotations

import math

import torch

from viz_core.tasks.frequencies import embedding_spectrum


def test_one_wave_is_one_frequency() -> None:
    angles = 2 * math.pi * 3 * torch.arange(11) / 11
    shares = embedding_spectrum(torch.stack([angles.cos() + 5, angles.sin()], dim=1))
    torch.testing.assert_close(shares, torch.eye(5)[2], atol=1e-6, rtol=0)


def test_two_waves_share_by_the_square_of_their_height() -> None:
    angle = 2 * math.pi * torch.arange(7) / 7
    shares = embedding_spectrum((3 * angle.cos() + (2 * angle).cos())[:, None])
    torch.testing.assert_close(shares, torch.tensor([0.9, 0.1, 0.0]), atol=1e-6, rtol=0)


def test_as_the_sum_says() -> None:
    E, p = torch.randn(9, 4, generator=torch.Generator().manual_seed(0)), 9
    power = [
        sum(
            abs(sum(float(E[a, d]) * complex(math.cos(x * a), math.sin(x * a)) for a in range(p))) ** 2
            for d in range(4)
        )
        for x in (2 * math.pi * k / p for k in range(1, 5))
    ]
    torch.testing.assert_close(embedding_spectrum(E), torch.tensor(power) / sum(power), atol=1e-6, rtol=0)
