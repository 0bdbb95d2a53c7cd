"""The multi-head chapter through AppTest: its figures and numbers are the library's, whatever an address asks for."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, claim_names, components, figure_names, texts
from tests.visits import Visits
from viz_core.lessons.multi_head import multi_head_cost
from viz_core.view.components import unframe

OpenPage = Callable[..., AppTest]
CHAPTER = "multi-head"
FRESH = {"mh-source": "Fresh weights"}  # it opens on a trained layer, whose width is as it is


def test_a_sentence_through_fresh_weights_with_its_claims(visits: Visits) -> None:
    app = visits(CHAPTER, **FRESH)
    found = badges(app)
    assert set(claim_names(app)) >= {"torch", "torch-weights", "rows", "walk"}
    assert all(found.values())
    assert any("torch.nn.MultiheadAttention" in words for words in found)
    cost = multi_head_cost(9, 64, 8)
    assert "A width of 64 and 9 tokens with **8** heads: **16,384** parameters" in texts(app)
    assert f"**{cost.multiplications:,}** multiplications" in texts(app)
    assert "w = d/h = 64/8 = 8" in texts(app)


@pytest.mark.parametrize("quantity", ["Attention weights", "contributions", "lengths"])
def test_the_head_that_opens_is_that_of_scoring_and_the_one_that_sections_look_into(
    visits: Visits, quantity: str
) -> None:
    app = visits(CHAPTER, **{"open-all": "true", "mh-stage": "Scores", "mh-quantity": quantity})
    state = unframe(components(app, "attention_view")[0].bytes)[0]["state"]
    opened, beside = state["head"], state["display"]
    assert (beside["compare"], beside["other"]) == ("side", "0.0.3")
    assert opened + 1 == visits("scoring-functions").selectbox(key="sf-which").value
    assert any(f"Head {opened + 1} of 8" in caption.value for caption in app.caption)


def test_heads_that_do_not_divide_the_width_are_a_sentence(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **FRESH | {"mh-text": "I lost my keys.", "mh-heads": "5"})
    assert "5 heads do not divide a width of 64" in app.warning[0].value
    assert "Possible: 1, 2, 4, 8, 16, 32, 64." in " ".join(app.warning[0].value.split())
    assert app.number_input(key="mh-heads").value == 5  # nothing typed is lost
    assert "Below is still “4 heads”" in app.warning[0].value
    assert "the weights of all heads (4) equal those of torch" in badges(app)
    app.button(key="mh-heads-4").click().run()
    assert not app.warning
    assert app.number_input(key="mh-heads").value == 4
    assert app.text_input(key="mh-text").value == "I lost my keys."
    assert "w = d/h = 64/4 = 16" in texts(app)


@pytest.mark.parametrize("source", ["Fresh weights", "Trained layer"])
@pytest.mark.parametrize("text", ["", "\u200b"])
def test_no_words_are_a_sentence(open_page: OpenPage, source: str, text: str) -> None:
    """And what is below is that of the last ones."""
    app = open_page(CHAPTER, **{"mh-source": source, "mh-text": "I lost my keys."})
    before = badges(app), figure_names(app)
    app.text_input(key="mh-text").set_value(text).run()
    assert ["Type a few words above. Below is still “I lost my keys" in each.value for each in app.warning] == [True]
    assert (badges(app), figure_names(app)) == before


def test_without_a_model_sentences_still_work_and_the_trained_layer_says_why_not(
    no_checkpoints: None, open_page: OpenPage
) -> None:
    assert all(badges(open_page(CHAPTER)).values())
    app = open_page(CHAPTER, **{"mh-source": "Trained layer"})
    assert "The shipped model cannot be loaded" in app.error[0].value
