"""Questions that are answered on a figure, by a mark or a drawing: the page shows what is right after the guess."""

import re
from collections.abc import Callable, Collection, Mapping

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.architectures.networks import ANSWERS as LAYERS
from pages.attention_pooling import parts as pooling
from pages.bahdanau.parts import ANSWERS as TOKENS
from pages.learning.parts import ANSWERS as MAPS
from pages.linear_attention.parts import ANSWERS as HEIGHTS
from pages.multi_head.parts import ANSWERS as THUMBNAILS
from pages.position_embeddings.sections import ANSWERS as WORDS
from pages.queries_keys_values import parts as names
from pages.relative_projection import parts as rotation
from pages.scoring_functions import parts as scores
from pages.scoring_functions.scores import WITHOUT_ROOT
from pages.sinusoidal_encoding.parts import ANSWERS as ROWS
from pages.transformer.decoding import ANSWERS as TRANSLATED
from tests.pages.reading import charts, components, drawn, figures, heatmap, texts
from tests.visits import Visits
from ui.chapter.contents import all_chapters, page_file
from ui.text.words import ENGLISH, load_words
from ui.widgets.choices import Mark, Marks
from ui.widgets.predictions import TOP, Board, OnFigure, Truth, read_prediction
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
    return inside(LAYERS, 8, max(float(y) for y in path["y"] if y is not None))


def largest_weight(app: AppTest) -> Answer:
    (cells,) = drawn(app, "weights")
    row = int(np.flatnonzero(~np.isnan(cells["z"]).all(1))[-1])  # rows after the step are blank
    return inside(TOKENS, float(np.argmax(cells["z"][row])), row)


def layer_of_induction(app: AppTest) -> Answer:
    (grid,) = drawn(app, "every-head")
    n = [row[0] for row in grid["text"]].index("")
    letters = [row[0].split(" → ")[0] for row in grid["text"][:n]]
    cells = np.pad(grid["z"], (0, 1)).reshape(2, n + 1, 4, n + 1)[:, :-1, :, :-1]  # a blank row and column between maps
    maps = torch.tensor(cells.swapaxes(1, 2).reshape(8, n, n))
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


def height_in_the_last_figure(app: AppTest) -> Answer:
    return inside(WITHOUT_ROOT, 0, float(max(charts(app, "row")[-1][1][0]["y"])))


def less_probable_word(app: AppTest) -> Answer:
    """The word that a head off makes less probable by more than 10 points; the mark for none if there is none."""
    lines = [re.findall(r"</span><small>(\d+)%", each.proto.body) for each in app.get("html")]
    intact, *without = [[int(percent) for percent in line] for line in lines if line]
    falls = np.subtract(intact, without[0]) if without else np.array([])
    return {1: 0, 4: 1}.get(int(falls.argmax())) if falls.max(initial=0) > 10 else 2 if without else None


CHOSEN: Mapping[tuple[str, str], tuple[Marks, Callable[[AppTest], Answer]]] = {
    ("architectures", "twice"): (LAYERS, end_of_the_path),
    ("bahdanau", "bed"): (TOKENS, largest_weight),
    ("learning", "one-layer"): (MAPS, layer_of_induction),
    ("linear-attention", "twice"): (HEIGHTS, height_of_a),
    ("multi-head", "other"): (THUMBNAILS, changed_head),
    ("position-embeddings", "bag"): (WORDS, largest_change),
    ("scoring-functions", "root"): (WITHOUT_ROOT, height_in_the_last_figure),
    ("sinusoidal-encoding", "similar"): (ROWS, more_similar_row),
    ("transformer", "off"): (TRANSLATED, less_probable_word),
}


def address(chapter: str, controls: Mapping[str, object]) -> dict[str, str]:
    """Query parameters that set these controls."""
    words = load_words(chapter, ENGLISH)
    return {
        f"{words.prefix}-{name}": words.group("option").get(str(value), str(value).strip("[']"))
        for name, value in controls.items()
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


def test_a_guess_by_radio_button_sets_the_controls_as_one_on_the_figure_does(open_page: Callable[..., AppTest]) -> None:
    app = open_page("linear-attention")
    radio = app.radio(key="la-guess-twice")
    radio.set_value(radio.options[2]).run()
    assert app.slider(key="la-time").value == HEIGHTS.after["time"]
    assert "**Yes.**" in "\n".join(each.value for each in app.markdown)


def test_a_guess_about_another_sentence_sets_it_without_a_word(open_page: Callable[..., AppTest]) -> None:
    app = open_page("bahdanau", **{"b-text": "We are here."})
    radio = app.radio(key="b-guess-bed")
    radio.set_value(radio.options[1]).run()
    assert app.text_input(key="b-text").value == TOKENS.before["text"]
    assert not [each.value for each in app.caption if "The address asks" in each.value]


HIDDEN = load_words("common", ENGLISH)("sketch.kept-back")
DRAWN: dict[tuple[str, str], tuple[OnFigure, Callable[[], Truth]]] = {
    ("queries-keys-values", "warm"): (names.THE_ROW, names.warm_weights),
    ("attention-pooling", "wide"): (pooling.THE_FIT, pooling.wide_fit),
    ("scoring-functions", "row"): (scores.THE_ROW, scores.row),
    ("relative-projection", "hand"): (rotation.THE_HAND, rotation.hand),
}


def as_drawn(board: Board, values: np.ndarray) -> str:
    """What a reader draws for these values: within the picture, in whole levels."""
    levels = [TOP * value if board.kind == "weights" else value for value in board.levels(values)]
    return "".join(f"{min(max(round(level), 0), TOP):02}" for level in levels)


def numbers(app: AppTest, figure: str) -> np.ndarray:
    """Every coordinate and value that a figure has, in one row."""
    found = (np.ravel(trace[part]) for trace in drawn(app, figure) for part in "xyz" if part in trace)
    return np.concatenate([each.astype(float) for each in found if each.dtype.kind in "fiu"])


@pytest.mark.parametrize(
    ("call", "tested"), [(r'exercise\("([\w-]+)"[^)]*marks=', CHOSEN), (r'draw_on_figure\("([\w-]+)"', DRAWN)]
)
def test_every_question_on_a_figure_is_tested(call: str, tested: Collection[tuple[str, str]]) -> None:
    files = [(chapter, path) for chapter in all_chapters() for path in page_file(chapter).parent.glob("*.py")]
    offered = {
        (chapter, name) for chapter, path in files for name in re.findall(call, path.read_text(encoding="utf-8"))
    }
    assert offered == set(tested)


@pytest.mark.parametrize(("chapter", "name"), DRAWN)
def test_who_draws_the_truth_is_right_and_each_mistake_is_known(chapter: str, name: str) -> None:
    (on, find), exercise = DRAWN[chapter, name], load_words(chapter, ENGLISH)(f"exercise.{name}")
    truth = find()
    assert {answer.mark for answer in read_prediction(exercise).answers} == {"x", " ", *truth.mistakes}
    for mark, values in {"x": truth.values, **truth.mistakes}.items():
        guess = on.board.read(as_drawn(on.board, values))
        assert guess is not None
        assert on.board.judge(guess, truth.values, truth.mistakes) == mark


def test_who_changes_a_control_after_the_answer_is_done_drawing(open_page: Callable[..., AppTest]) -> None:
    row = as_drawn(names.THE_ROW.board, names.warm_weights().values)
    app = open_page("queries-keys-values", **{"qkv-guess-warm-drawn": "true", "qkv-guess-warm": row})
    app.select_slider(key="qkv-temperature").set_value(1.0).run()
    assert (app.select_slider(key="qkv-temperature").value, components(app, "sketch")) == (1.0, [])


@pytest.mark.parametrize(("chapter", "name"), DRAWN)
def test_a_figure_keeps_its_answer_until_it_is_drawn(visits: Visits, chapter: str, name: str) -> None:
    on, find = DRAWN[chapter, name]
    key = f"{load_words(chapter, ENGLISH).prefix}-guess-{name}"
    values = find().values
    app = visits(chapter, **{f"{key}-drawn": "true"})
    assert figures(app, on.figure)[0]["about"]["alt"] == HIDDEN
    before = numbers(app, on.figure)
    assert "**Yes.**" not in texts(app)
    app = visits(chapter, **{f"{key}-drawn": "true", key: as_drawn(on.board, values)})
    assert figures(app, on.figure)[0]["about"]["alt"] != HIDDEN
    after = numbers(app, on.figure)
    revealed = [value for value in values if value and not np.isclose(before, value, atol=1e-6, rtol=0).any()]
    assert len(revealed) >= len(values) / 4, "the answer was there before"
    assert all(np.isclose(after, value, atol=0.05).any() for value in revealed)
    assert "**Yes.**" in texts(app)
    assert components(app, "sketch")
