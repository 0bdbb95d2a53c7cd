"""What heads are worth, as it is read: how two measurements agree."""

from __future__ import annotations

import numpy as np
import pytest

from ui.compute.heads import HeadImportance, HeadWorth, gradient_agreement
from viz_core.pretrained.bootstrap import Difference


@pytest.mark.parametrize(("order", "expected"), [((1, 2, 3, 4), 1.0), ((4, 3, 2, 1), -1.0), ((2, 1, 4, 3), 0.6)])
def test_agreement_is_that_of_ranks(order: tuple[int, ...], expected: float) -> None:
    heads = [
        HeadWorth("encoder.0.self", i, Difference(-cost, -cost, -cost), None, float(np.exp(gradient)))
        for i, (cost, gradient) in enumerate(zip((1, 2, 3, 4), order, strict=True))
    ]
    assert gradient_agreement(HeadImportance("bleu", 1.0, 4, tuple(heads))) == pytest.approx(expected)
