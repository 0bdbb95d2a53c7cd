"""Query times key of a French word and an English one, and of a pair that was clicked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from streamlit.testing.v1 import AppTest

from tests.pages.reading import drawn, one_line, stands
from viz_core.maps.score_products import score_products
from viz_core.pretrained import load_translator


def test_a_pair_of_words(open_page: Callable[..., AppTest]) -> None:
    run = load_translator("transformer-en-fr", "cpu").translate("He is calm.")
    pair = {"sp-query": f"2 {run.target_tokens[1]}", "sp-key": f"3 {run.source_tokens[2]}", "sp-order": "by size"}
    app = open_page(
        "transformer", **{"t-text": "He is calm.", "t-section": "Query times key", **pair}, head="cross.2.5"
    )
    stands(app)
    found = score_products(run.trace["decoder.2.cross"], 5, 1, 2)
    bars, total, _, query = drawn(app, "score-products")
    largest_first = np.argsort(-abs(found.products), kind="stable")
    np.testing.assert_allclose(bars["y"], found.products[largest_first], atol=1e-5)
    np.testing.assert_allclose(query["z"][0], found.query[largest_first], atol=1e-5)
    assert abs(total["y"][-1] - found.score) < 1e-4
    assert f"Half of the total absolute value is in {found.half} dimensions" in one_line(app)
