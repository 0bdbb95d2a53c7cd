"""What the chapter on heads says of its pictures, compared with what was drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import claims, drawn, stands, texts
from ui.compute.heads import head_scans, scanned_models
from ui.text.words import load_words
from viz_core.maps.roles import ROLES
from viz_core.pretrained.scan_inputs import SETS

OpenPage = Callable[..., AppTest]
CHAPTER = "heads"
WORDS = load_words(CHAPTER, "en")


@pytest.mark.parametrize("model", ["writer-en", "reader-en", "transformer-en-fr"])
@pytest.mark.parametrize(("x", "y"), [("entropy", "first"), ("punctuation", "same-word")])
def test_of_the_points(open_page: OpenPage, model: str, x: str, y: str) -> None:
    """As many points as it counts, each in its interval."""
    app = open_page(CHAPTER, **{"hs-model": model, "hs-x": x, "hs-y": y, "open-all": "false"})
    stands(app)
    points = drawn(app, "heads")
    tables = [table for (name, _), table in head_scans(model).tables.items() if name == "narrow"]
    drawn_heads = [table for table in tables if {x, y} <= set(table.measures)]
    assert sum(len(trace["x"]) for trace in points) == sum(len(table.heads) for table in drawn_heads)
    for trace in points:
        for side in ("error_x", "error_y"):
            lengths = np.array([trace[side]["array"], trace[side]["arrayminus"]], dtype=float)
            assert np.nanmin(lengths) >= -1e-6


def test_of_a_card_with_all_sections_open(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"hs-model": "reader-en", "hs-y": "next", "head": "encoder-self.0.0"})
    stands(app)
    table = head_scans("reader-en").tables["narrow", "encoder-self"]
    role = table.role_of(table.heads.index((0, 0)))
    assert role is not None
    assert f"Role: **{WORDS(f'option.{role[0]}')}**, $kappa$ = {role[1]:.2f}" in texts(app)
    assert "OV circuit: this model's layers do not allow it" in texts(app)  # more than a norm before its words


def test_chance_left_in_moves_every_point_of_a_role(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"hs-break": WORDS("option.no-chance"), "hs-y": "first"})
    table = head_scans("writer-en").tables["narrow", "decoder-self"]
    points = np.concatenate([trace["y"] for trace in drawn(app, "heads-raw")])
    np.testing.assert_allclose(np.sort(points), np.sort(table.part("first", "mean")), rtol=1e-5)
    own = [claim for claim in claims(app) if "for every role" in claim]
    assert [claim.startswith(":green[") for claim in own] == [True, False]


@pytest.mark.parametrize("model", scanned_models())
def test_means_lie_in_their_intervals(model: str) -> None:
    assert model in scanned_models()
    for (name, _), table in head_scans(model).tables.items():
        assert name in SETS
        for measure in table.measures:
            low, mean, high = (table.part(measure, part) for part in ("low", "mean", "high"))
            known = ~np.isnan(mean)
            assert (low[known] <= mean[known] + 1e-3).all()
            assert (mean[known] <= high[known] + 1e-3).all()
            if measure in ROLES:
                assert np.nanmax(table.part(measure, "chance")) < 1
