"""The chapter on atom mapping: what it opens with, what it refuses, and its scores."""

import numpy as np
import pytest

from pages.atom_mapping.parts import count_right, numbers_of, reactions, results
from tests.pages.reading import claim_names, drawn, places
from tests.visits import Visits
from ui.text.words import load_words

CHAPTER = "atom-mapping"
WORDS = load_words(CHAPTER, "en")


def test_opens_with_the_scores_of_all_heads(visits: Visits) -> None:
    app = visits(CHAPTER)
    assert "right" in claim_names(app)
    shown = places(app)
    weights, unclear = np.array(shown["weights"]), np.array(shown["unclear"])
    marked = np.flatnonzero(unclear >= 0)
    assert 0 < len(marked) < len(unclear)
    own = weights[np.arange(len(weights)), shown["strongest"]]
    assert (weights[marked, unclear[marked]] >= 0.5 * own[marked] - 1e-3).all()
    assert shown["firstRow"] == 1, "rows of the maps below choose atoms"
    scores = numbers_of("golden")
    drawn_heads = np.array([trace["y"] for trace in drawn(app, "heads")[:8]]).T
    np.testing.assert_allclose(drawn_heads, scores["heads"]["mean"], atol=1e-6)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CXx>>C", "Xx is no atom or bond"),
        ("CCO", "then >> once"),
        ("C1CC>>C", "Ring 1 is opened"),
        ("<script>alert(1)</script>", "is no atom or bond"),
        ("C" * 300 + ">>" + "C" * 290, "the model takes at most 512"),
    ],
)
def test_what_is_no_reaction_is_said(visits: Visits, text: str, why: str) -> None:
    app = visits(CHAPTER, **{"open-all": "false", "am-reaction": WORDS("option.own"), "am-smiles": text})
    assert any(why in warning.value.replace("\\", "") for warning in app.warning)


def test_masked_atoms_come_from_the_address(visits: Visits) -> None:
    """The atom that joins the rings: without it, the head takes another for its own."""
    app = visits(CHAPTER, **{"open-all": "false", "am-masked": "12"})
    shown = places(app)
    assert [place["masked"] for place in shown["places"]].index(True) == 11
    weights = np.array(shown["weights"])
    assert (weights[:, 11] == 0).all()
    assert "right" in claim_names(app, failing=True)
    assert "right" not in claim_names(visits(CHAPTER, **{"open-all": "false"}), failing=True)
    for other in ("99", "<b>"):
        assert not any(each["masked"] for each in places(visits(CHAPTER, **{"am-masked": other}))["places"])


def test_the_words_agree_with_the_scores() -> None:
    """The prediction, how far the others come, and that no atom of a missing reactant has an answer."""
    means = np.array(numbers_of("golden")["heads"]["mean"])
    assert [tuple(place) for place in np.argwhere(means >= 0.7)] == [(layer, 5) for layer in range(2, 12)]
    assert np.delete(means, 5, axis=1).max() < 0.535
    assert numbers_of("golden")["best_minus_next"]["low"] < 0 < numbers_of("golden")["best_minus_next"]["high"]
    off = {name: 100 * found["mean"] for name, found in results("reactions")["off"].items()}
    assert [round(off[name], 1) for name in ("none", "own", "everywhere")] == [88.1, 86.8, 63.9]
    assert round(off["none"] - off["own"]) == 1
    assert 23 < off["none"] - off["everywhere"] < 27
    for versions in reactions().values():
        assert count_right(versions.get("missing", versions["canonical"])) <= len(versions["canonical"]["truth"])
        assert all([] not in each["truth"] for name, each in versions.items() if name != "missing")
        assert "missing" not in versions or [] in versions["missing"]["truth"]
        assert len({versions[name]["smiles"].partition(">>")[2] for name in versions if name != "reordered"}) == 1
