"""A published model's scores dimension by dimension: what they add up to makes its maps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from viz_core.hub import HubModel
from viz_core.maps.score_products import score_products


@pytest.mark.parametrize("family", ["bert", "llama", "qwen3", "gemma2", "gpt-oss", "t5", "vit"])
def test_the_softmax_of_what_the_terms_add_up_to_is_the_map(family: str, tiny_model: Callable[[str], HubModel]) -> None:
    """Rotated queries and keys, grouped ones, normed ones, a cap, learned sinks, a bias by bucket."""
    model = tiny_model(family)
    run = model.run(image=Image.new("RGB", (16, 16), "red")) if family == "vit" else model.run("The cat sat on the mat")
    call = next(call for call in run.trace if call.kind == "self")
    query, head = call.num_queries - 1, call.num_heads - 1
    found = [score_products(call, head, query, key) for key in range(call.num_keys)]
    assert max(each.residual for each in found) < 1e-5
    parts = np.array([0.0 if each.hidden else math.exp(each.total) for each in found])
    np.testing.assert_allclose(parts / parts.sum(), call.weights(head=head, queries=query)[0], atol=1e-6)
    sink, *tokens = found
    assert sink.products.any() == (family != "gpt-oss"), "a learned sink is a score and no key"
    assert any(each.cap for each in found) == (family == "gemma2")
    assert any(each.bias for each in tokens if not each.hidden) == (family == "t5")
