"""Patterns of heads by hand: which has one, and which head opens first."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from viz_core.lab.walk import opening_head
from viz_core.lab.walk_records import Attention
from viz_core.maps.fingerprints import clearest_head, measure_maps, pattern_of
from viz_core.maps.head_measure import MapInfo


@pytest.mark.parametrize(
    ("fingerprint", "expected"),
    [
        ({"previous": 0.6, "next": 0.1, "entropy": 3.0}, "previous"),
        ({"previous": 0.49, "first": 0.48, "entropy": 0.9}, None),
        ({"separator": 0.9, "next": 0.5}, "separator"),
        ({"written": 0.76, "read": 0.1, "first": 0.2, "distance": 4.0}, "written"),
        ({"negative": 0.9}, None),
        ({}, None),
    ],
)
def test_a_pattern_gets_half_of_the_weight(fingerprint: dict[str, float], expected: str | None) -> None:
    assert pattern_of(fingerprint) == expected


def test_a_head_that_rests_does_not_open_first() -> None:
    layers = [[{"first": 0.99, "next": 0.0}, {"diagonal": 0.9}], [{"next": 0.7}, {"previous": 0.8}]]
    assert clearest_head(layers) == (1, 1)
    assert clearest_head(layers[:1]) is None
    assert clearest_head([]) is None


def attention(site: str, weights: torch.Tensor) -> Attention:
    map_, vectors, rows = weights.numpy(), np.zeros((*weights.shape[:2], 2), np.float32), np.zeros((5, 2), np.float32)
    return Attention(site, *[vectors] * 3, map_, map_ >= 0, map_, vectors, *[rows] * 3)


def test_a_walk_opens_on_the_clearest_head_else_on_the_one_that_rests_least() -> None:
    n, keys = 5, ["The", "cat", "is", "here", "<eos>"]
    mark, before = torch.zeros(n, n), torch.zeros(n, n)
    mark[:, -1] = 1
    before[range(1, n), range(n - 1)] = before[0, 0] = 1
    heads = torch.stack([mark, torch.full((n, n), 1 / n), before])
    assert pattern_of(measure_maps(heads, MapInfo(n, n, separators=(4,)))[0]) == "separator"
    assert opening_head(attention("encoder.0.self", heads), keys) == (2, "previous")
    assert opening_head(attention("encoder.0.self", heads[:2]), keys) == (1, None)
    assert opening_head(attention("decoder.0.cross", heads[:2]), keys) == (1, None)
