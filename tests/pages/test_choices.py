"""Questions that are answered on a figure: what is right follows from what the page draws then, and not before."""

import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.architectures.networks import ANSWERS as LAYERS
from pages.bahdanau.parts import ANSWERS as TOKENS
from pages.learning.parts import ANSWERS as MAPS
from pages.linear_attention.parts import ANSWERS as HEIGHTS
from pages.multi_head.parts import ANSWERS as THUMBNAILS
from pages.position_embeddings.sections import ANSWERS as WORDS
from pages.sinusoidal_encoding.parts import ANSWERS as ROWS
from tests.pages.reading import drawn, heatmap
from tests.visits import Visits
from ui.chapter.contents import all_chapters, page_file
from ui.text.words import ENGLISH, load_words
from ui.widgets.choices import Mark, Marks
from ui.widgets.predictions import read_prediction
from viz_core.lessons.multi_head import multi_head_steps, trained_input, trained_layer
from viz_core.maps.measures import induction_mass
from viz_core.pretrained import load

Answer = int | None


def inside(marks: Marks, x: float, y: float) -> Answer:
    """The mark that has this point of the figure in it."""

    def has(mark: Mark) -> bool:
        return all(
            axis in mark.shares or low <= value <= high
            for axis, value, (low, high) in (("x", x, mark.x), ("y", y, mark.y))
        )

    return next((number for number, mark in enumerate(marks.answers) if has(mark)), None)


def height_of_a(app: AppTest) -> Answer:
    return inside(HEIGHTS, 0, float(drawn(app, "state")[0]["y"][0]))


def largest_change(app: AppTest) -> Answer:
    """The bar of the word, or the mark for all bars where there is no change."""
    changes = np.asarray(drawn(app, "insight")[0]["y"])
    return 2 if changes.max() < 1e-5 else inside(WORDS, float(changes.argmax()), 0)


def end_of_the_path(app: AppTest) -> Answer:
    (path,) = (each for each in drawn(app, "network-convolution") if each.get("line", {}).get("width", 0) >= 3)
    return inside(LAYERS, 12, max(float(y) for y in path["y"] if y is not None))


def largest_weight(app: AppTest) -> Answer:
    bars = drawn(app, "weights")[-1]
    return inside(TOKENS, float(bars["x"][int(np.argmax(bars["y"]))]), 0)


def layer_of_induction(app: AppTest) -> Answer:
    maps = torch.tensor(np.stack([trace["z"] for trace in drawn(app, "every-head")]))
    letters = [row[0].split(" → ")[0] for row in drawn(app, "every-head")[0]["text"]]
    masses = induction_mass(maps, letters).reshape(2, -1).amax(1).tolist()
    return masses.index(max(masses)) if max(masses) > 0.5 else None


def more_similar_row(app: AppTest) -> Answer:
    table = heatmap(app)[1].astype(float) / 127.5 - 1
    places = [round(mark.y[0] * len(table)) for mark in ROWS.answers]
    return int(np.argmax(table[places] @ table[0]))


def changed_head(app: AppTest) -> Answer:
    """The head of which most weight is in other cells than on the sentence that the page opens on; none below 25%."""
    translator = load("transformer-en-fr", device="cpu")
    maps = []
    for text in (str(THUMBNAILS.before["text"]), app.text_input(key="mh-text").value):
        tokens = trained_input(translator, text, 2, 64)
        maps.append(multi_head_steps(trained_layer(translator, 2, 8), tokens.X[None]).weights[0].detach())
    n = min(each.shape[-1] for each in maps)
    heads = [int(re.findall(r"\d+", mark.part)[0]) for mark in THUMBNAILS.answers]
    differences = (maps[0][heads, :n, :n] - maps[1][heads, :n, :n]).abs().sum(-1).mean(-1) / 2
    return int(differences.argmax()) if float(differences.max()) > 0.25 else None


CHOSEN: Mapping[tuple[str, str], tuple[Marks, Callable[[AppTest], Answer]]] = {
    ("architectures", "twice"): (LAYERS, end_of_the_path),
    ("bahdanau", "bed"): (TOKENS, largest_weight),
    ("learning", "one-layer"): (MAPS, layer_of_induction),
    ("linear-attention", "twice"): (HEIGHTS, height_of_a),
    ("multi-head", "other"): (THUMBNAILS, changed_head),
    ("position-embeddings", "bag"): (WORDS, largest_change),
    ("sinusoidal-encoding", "similar"): (ROWS, more_similar_row),
}


def address(chapter: str, controls: Mapping[str, object]) -> dict[str, str]:
    """Query parameters that set these controls."""
    words = load_words(chapter, ENGLISH)
    return {
        f"{words.prefix}-{name}": words.group("option").get(str(value), str(value)) for name, value in controls.items()
    }


@pytest.mark.parametrize(("chapter", "name"), CHOSEN)
def test_the_right_mark_is_what_the_page_draws_after_the_guess_and_not_before(
    visits: Visits, chapter: str, name: str
) -> None:
    marks, find = CHOSEN[chapter, name]
    prediction = read_prediction(load_words(chapter, ENGLISH)(f"exercise.{name}"))
    right = [answer.mark for answer in prediction.answers].index("x")
    assert len(marks.answers) == len(prediction.answers)
    assert find(visits(chapter, **address(chapter, marks.after))) == right
    if marks.before != marks.after:
        assert find(visits(chapter, **address(chapter, marks.before))) != right
    numbers = [re.fullmatch(r"-?\d+(\.\d+)?", answer.text) for answer in prediction.answers]
    for place, number in enumerate(numbers):  # also of wrong answers, where a height says the number
        assert number is None or inside(marks, 0, float(number[0])) == place


def test_every_page_that_asks_on_a_figure_is_tested() -> None:
    offered = {
        (chapter, name)
        for chapter in all_chapters()
        for name in re.findall(r'exercise\("([\w-]+)", marks=', page_file(chapter).read_text(encoding="utf-8"))
    }
    assert offered == set(CHOSEN)


def test_a_guess_by_radio_button_sets_the_controls_as_one_on_the_figure_does(
    open_page: Callable[..., AppTest],
) -> None:
    app = open_page("linear-attention")
    radio = app.radio(key="la-guess-twice")
    radio.set_value(radio.options[2]).run()
    assert app.slider(key="la-time").value == HEIGHTS.after["time"]
    assert "**Yes.**" in "\n".join(each.value for each in app.markdown)
