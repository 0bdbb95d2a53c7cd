"""The multi-head chapter through AppTest: its figures and numbers are the library's, whatever an address asks for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.multi_head.figures import FLOW, flow_figure
from tests.pages.reading import badges, claim_names, components, stands, texts
from tests.visits import Visits
from ui.text.words import load_words
from viz_core.lessons.multi_head import multi_head_cost
from viz_core.view.components import unframe

OpenPage = Callable[..., AppTest]
CHAPTER = "multi-head"
FRESH = {"mh-source": "Fresh weights"}  # it opens on a trained layer, whose width is as it is


def test_opens_on_a_trained_layer(visits: Visits) -> None:
    app = visits(CHAPTER)
    assert app.segmented_control(key="mh-source").value == "trained"
    assert "self-attention of encoder block 3" in texts(app)
    assert all(badges(app).values())


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
    assert not any("The address asks for" in caption.value for caption in app.caption)


@pytest.mark.parametrize(("width", "heads"), [(1, 1), (100, 5), (512, 64)])
def test_width_and_heads_move_everything(open_page: OpenPage, width: int, heads: int) -> None:
    app = open_page(CHAPTER, **FRESH)
    app.number_input(key="mh-width").set_value(width)
    app.number_input(key="mh-heads").set_value(heads).run()
    assert not app.exception
    assert not app.warning
    assert all(badges(app).values())
    assert f"w = d/h = {width}/{heads} = {width // heads}" in texts(app)
    assert f"**{4 * width**2:,}** parameters" in texts(app)
    assert f"the weights of all heads ({heads}) equal those of torch" in badges(app)


@pytest.mark.parametrize("stage", ["Q in heads", "Scores", "Attention weights", "Y: the output", "X: the input"])
def test_every_tensor_can_be_looked_into(visits: Visits, stage: str) -> None:
    app = visits(CHAPTER, **FRESH | {"mh-stage": stage, "mh-head": "heads.0.2"})
    in_heads = stage in {"Q in heads", "Scores", "Attention weights"}
    assert any("Head 3 of 8" in caption.value for caption in app.caption) is in_heads


def test_heads_that_do_not_divide_the_width_are_a_sentence(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **FRESH | {"mh-text": "I lost my keys.", "mh-heads": "5"})
    assert "5 heads do not divide a width of 64" in app.warning[0].value
    assert "Possible: 1, 2, 4, 8, 16, 32, 64." in " ".join(app.warning[0].value.split())
    assert app.number_input(key="mh-heads").value == 5  # nothing typed is lost
    assert app.text_input(key="mh-text").value == "I lost my keys."
    assert not badges(app)
    app.button(key="mh-heads-4").click().run()
    assert not app.exception
    assert not app.warning
    assert app.number_input(key="mh-heads").value == 4
    assert app.text_input(key="mh-text").value == "I lost my keys."
    assert "w = d/h = 64/4 = 16" in texts(app)


@pytest.mark.parametrize("heads", [1, 8, 16])
def test_a_trained_layer_keeps_its_width_and_is_cut_anew(visits: Visits, heads: int) -> None:
    app = visits(CHAPTER, **{"mh-source": "Trained layer", "mh-heads": str(heads), "mh-block": "2"})
    assert "self-attention of encoder block 2" in texts(app)
    assert f"with **8** heads, here split into **{heads}**" in " ".join(texts(app).split())
    assert "**262,144** parameters" in texts(app)
    assert all(badges(app).values())


def test_random_vectors_need_no_words(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"mh-source": "Random vectors"})
    assert not app.text_input
    app.slider(key="mh-tokens").set_value(1).run()
    assert not app.exception
    assert "A width of 64 and 1 token with" in texts(app)
    assert all(badges(app).values())


@pytest.mark.parametrize("source", ["Fresh weights", "Trained layer"])
@pytest.mark.parametrize("text", ["", "\u200b"])
def test_no_words_are_a_sentence(open_page: OpenPage, source: str, text: str) -> None:
    app = open_page(CHAPTER, **{"mh-source": source})
    app.text_input(key="mh-text").set_value(text).run()
    assert not app.exception
    assert [*app.info, *app.warning]
    assert not badges(app)


@pytest.mark.parametrize("source", ["Fresh weights", "Trained layer"])
def test_long_texts_are_cut_and_say_so(open_page: OpenPage, source: str) -> None:
    app = open_page(CHAPTER, **{"mh-source": source})
    app.text_input(key="mh-text").set_value("the cat <b>$x$</b> " * 20).run()
    assert not app.exception
    assert "Only the first 64 of" in app.warning[0].value
    assert all(badges(app).values())


def test_without_a_model_sentences_still_work_and_the_trained_layer_says_why_not(
    no_checkpoints: None, open_page: OpenPage
) -> None:
    app = open_page(CHAPTER)
    assert all(badges(app).values())
    app = open_page(CHAPTER, **{"mh-source": "Trained layer"})
    assert "The shipped model cannot be loaded" in app.error[0].value


@pytest.mark.parametrize("block", [1, 2, 3])
def test_a_trained_layer_has_the_number_of_its_block(visits: Visits, block: int) -> None:
    """In the text above the maps, and in the maps."""
    app = visits(CHAPTER, **{"mh-source": "Trained layer", "mh-block": str(block)})
    stands(app)
    header, _ = unframe(components(app, "attention_view")[0].bytes)
    assert [layer["number"] for layer in header["base"]["groups"][0][0]["layers"]] == [block]


WORDS = load_words("multi-head", "en")
LABELS = WORDS.group("option") | WORDS.group("figure")
SHAPES = {block.name: (1, i, 2 * i) for i, block in enumerate(FLOW)}


def test_every_tensor_of_the_flow_has_its_shape() -> None:
    figure = flow_figure(SHAPES, 4, "weights", LABELS)
    texts = figure.data[-1]
    assert len(texts.text) == len(FLOW)
    for block, text in zip(FLOW, texts.text, strict=True):
        assert text == f"<b>{LABELS[block.name]}</b><br>(1, {SHAPES[block.name][1]}, {SHAPES[block.name][2]})"


@pytest.mark.parametrize("heads", [1, 2, 7])
def test_blocks_in_heads_are_cut_into_as_many(heads: int) -> None:
    figure = flow_figure(SHAPES, heads, "input", LABELS)
    cuts = [trace for trace in figure.data if trace.mode == "lines" and trace.opacity == 0.35]
    assert len(cuts) == (0 if heads == 1 else sum(block.cut for block in FLOW))
    assert all(np.isnan(trace.x).sum() == heads - 1 for trace in cuts)
    if heads == 2:
        assert cuts[0].x[0] == pytest.approx(0.5)  # queries stand from 0 to 1


def test_a_flow_needs_every_shape_and_a_real_choice() -> None:
    with pytest.raises(ValueError, match="shapes: expected one for each tensor, got none for input"):
        flow_figure({name: shape for name, shape in SHAPES.items() if name != "input"}, 1, "keys", LABELS)
    with pytest.raises(ValueError, match="chosen: expected one of input, .*, got 'masks'"):
        flow_figure(SHAPES, 1, "masks", LABELS)
