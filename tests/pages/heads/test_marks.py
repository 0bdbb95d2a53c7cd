"""Why heads look at nothing: what is recorded is true of the model that ships, and the page shows it."""

from collections.abc import Callable

import numpy as np
from streamlit.testing.v1 import AppTest

from pages.heads.marks import recorded, sample_groups
from recipes.marks import sample_maps
from tests.pages.reading import texts
from viz_core.maps import attention_sink
from viz_core.pretrained import load_translator
from viz_core.pretrained.samples import sentence


def test_the_recording_is_of_the_weights_that_ship() -> None:
    found = sample_maps(load_translator("transformer-en-fr", "cpu"), sentence("apple"))
    for kind, stored in recorded("now")["sample"].items():
        assert stored["keys"] == [*found[kind]["keys"]]
        assert np.abs(np.array(stored["maps"]) - np.array(found[kind]["maps"])).max() <= 1


def test_the_first_weights_rest_on_marks_whose_values_are_short_and_todays_do_not() -> None:
    before, now = recorded("before"), recorded("now")
    assert before["above"] == 40
    assert now["above"] <= 12
    assert now["median"] <= 0.3
    assert max(layer["value"] for kind in before["layers"].values() for layer in kind) < 0.1
    assert before["bleu"]["with"] - before["bleu"]["without"] > now["bleu"]["with"] - now["bleu"]["without"]


def test_rows_of_the_maps_sum_to_1() -> None:
    for when in ("before", "now"):
        for group in sample_groups(str, when):
            assert len(group.heads) == 24
            assert group.row_error < 1e-6


def test_the_section_shows_both_and_their_numbers(open_page: Callable[..., AppTest]) -> None:
    app = open_page("heads", **{"hs-open-marks": "true"})
    assert not app.exception
    before, now = recorded("before"), recorded("now")
    shown = texts(app)
    assert f"**{before['above']}** gave" in shown
    for setting in ("with", "without"):
        assert f"**{now['bleu'][setting]:.1f}**" in shown
    found = attention_sink(sample_groups(str, "before")[0].calls[1].weights(head=0)[0])
    assert found is not None  # the open head of the first weights
    assert f"**{found[1]:.2f}** of this head" in shown
    (table,) = (each.value for each in app.dataframe if len(each.value) == 6)
    assert table.iloc[3, 1] == before["layers"]["decoder-self"][0]["median"]
