"""Figures of chapters, their predictions, and examples of messages."""

import inspect
import re
import tomllib
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import isfunction, signature

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.source_files import ROOT
from ui.blocks.diagram import Arrow, Box, diagram
from ui.blocks.figures import token_map
from ui.blocks.over_picture import over_picture_figure, signed_image, weights_image
from ui.chapter.contents import all_chapters, folder, page_file
from ui.text.words import ENGLISH, load_words
from ui.widgets.predictions import TOP, Board, OnFigure, Truth, read_prediction
from viz_core.view import components as theme


def test_boxes_and_the_sides_at_which_arrows_end() -> None:
    boxes = {"a": Box("A", 0, 0), "b": Box("B", 2, 0), "c": Box("C", 2, 2)}
    figure = diagram(boxes, [Arrow("a", "b"), Arrow("b", "c", 1.0)])
    across, down, texts = figure.data
    assert (list(across.x), list(across.y)) == (pytest.approx([0.43, 1.57]), [0, 0])
    assert (list(down.x), list(down.y)) == ([2, 2], pytest.approx([0.31, 1.69]))
    assert down.line.width > across.line.width
    assert list(texts.text) == ["A", "B", "C"]
    assert len(figure.layout.shapes) == 6
    low, high = figure.layout.yaxis.range
    assert low > high  # rows go down
    with pytest.raises(ValueError, match="expected names of boxes, got d"):
        diagram(boxes, [Arrow("a", "d")])


PICTURE_LABELS = {name: name for name in ("row", "column", "weight", "layer", "play", "pause")}


def test_maps_lie_over_the_picture_where_its_patches_are() -> None:
    picture = Image.new("L", (12, 8))
    maps = {"one": np.arange(6, dtype=np.float32).reshape(2, 3), "two": np.zeros((2, 3), dtype=np.float32)}
    figure = over_picture_figure(picture, maps, None, PICTURE_LABELS)
    for i, trace in enumerate(figure.data):
        np.testing.assert_array_equal(trace.z, list(maps.values())[i])
        image = figure.layout.images[i]
        assert (image.x, image.y, image.sizex, image.sizey) == (0.5, 0.5, 3, 2)
        assert (list(trace.x), list(trace.y)) == ([1, 2, 3], [1, 2])
    assert figure.data[0].zmax == 5
    assert figure.layout.yaxis.autorange == figure.layout.yaxis2.autorange == "reversed"


def test_the_patch_itself_does_not_drown_the_others() -> None:
    values = np.array([[0.9, 0.01], [0.02, 0.03]], dtype=np.float32)
    figure = over_picture_figure(Image.new("L", (4, 4)), {"a": values}, (0, 0), PICTURE_LABELS)
    assert figure.data[0].zmax == pytest.approx(0.03)
    box = next(s for s in figure.layout.shapes if s.type == "rect")
    assert (box.x0, box.x1, box.y0, box.y1) == (0.5, 1.5, 0.5, 1.5)
    one = over_picture_figure(Image.new("L", (4, 4)), {"a": values[:1, :1]}, (0, 0), PICTURE_LABELS)
    assert one.data[0].zmax == pytest.approx(0.9)


def test_pictures_of_maps_have_the_colours_of_the_scales() -> None:
    picture = signed_image(np.array([[-2.0, 0.0, 1.0]], dtype=np.float32), limit=1.0, side=30)
    assert picture.size == (30, 10)
    assert [picture.getpixel((x, 5)) for x in (5, 15, 25)] == [(5, 48, 97), (247, 247, 247), (103, 0, 31)]
    picture = weights_image(np.array([[0.0, 0.25], [1.0, 1.0]], dtype=np.float32), side=2)
    halfway = weights_image(np.array([[0.5]], dtype=np.float32), side=1, root=False)
    found = [picture.getpixel(place) for place in ((0, 0), (1, 0), (0, 1))]
    with warnings.catch_warnings(action="error"):
        unknown = weights_image(np.array([[np.nan]], dtype=np.float32), side=1)
    assert unknown.getpixel((0, 0)) == found[0]
    assert found == [(68, 1, 84), halfway.getpixel((0, 0)), (253, 231, 37)]


THEMES = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))["theme"]


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb" (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("mode", "css"), [("light", theme.LIGHT), ("dark", theme.DARK)])
def test_texts_are_readable_and_a_view_without_the_app_has_its_colours(mode: str, css: str) -> None:
    colours = THEMES[mode]
    categories = colours["chartCategoricalColors"]
    grounds = colours["backgroundColor"], colours["secondaryBackgroundColor"]
    pairs = [(text, g) for text in (colours["textColor"], colours["linkColor"], categories[0]) for g in grounds]
    app_css = (ROOT / "assets/components/app.css").read_text("utf-8")
    code = re.findall(r"\.token.*? \{ color: light-dark\((#\w{6}), (#\w{6})\); \}", app_css)
    assert len(code) == 5
    pairs += [(each[mode == "dark"], colours["codeBackgroundColor"]) for each in code]
    assert [pair for pair in pairs if contrast(*pair) < 4.5] == []  # WCAG, success criterion 1.4.3, for small text
    shown = dict(re.findall(r"--st-([\w-]+)-color: (#\w{6});", css))
    assert [shown[name] for name in ("text", "background", "primary")] == [
        colours[f"{name}Color"] for name in ("text", "background", "primary")
    ]
    assert ",".join(categories[:2]) in css


@pytest.mark.parametrize(("shown", "limits"), [("added", (-4, 4)), ("scores", (-4, 4)), ("weights", (0, 1))])
def test_a_map_has_its_scale_and_as_many_tokens_as_fit(shown: str, limits: tuple[float, float]) -> None:
    labels = defaultdict(lambda: "label")
    figure = token_map(np.eye(3), ["<b>", "b", "c"], shown, labels)
    assert figure.data[0].z.tolist() == np.eye(3).tolist()
    assert (figure.data[0].zmin, figure.data[0].zmax) == limits
    assert figure.layout.xaxis.ticktext == figure.layout.yaxis.ticktext == ("&lt;b&gt;", "b", "c")
    crowded = [token_map(np.eye(count), ["a"] * count, shown, labels).layout.xaxis for count in (32, 33)]
    assert [axis.showticklabels for axis in crowded] == [True, False]


WRITTEN = """How many?
Count.
- [ ] one
  > One is
  > too few.
- [x] two
> Two it is.
> Always."""

PREDICTIONS = [
    (chapter, name)
    for chapter in all_chapters()[1:]
    for name in load_words(chapter, ENGLISH).sections
    if name.startswith("exercise.")
]


def test_a_prediction_is_read_as_it_is_written() -> None:
    read = read_prediction(WRITTEN)
    assert read.question == "How many?\nCount."
    assert [(each.mark, each.text, each.reply) for each in read.answers] == [
        (" ", "one", "One is too few."),
        ("x", "two", ""),
    ]
    assert read.why == "Two it is.\nAlways."
    for text in ("Why?\n- [ ] a\n> b", "Why?\n- [x] a\n- [x] b"):
        with pytest.raises(ValueError, match="exactly one right answer"):
            read_prediction(text)


@pytest.mark.parametrize(("chapter", "name"), PREDICTIONS)
def test_a_wrong_answer_has_a_reply_of_its_own(chapter: str, name: str) -> None:
    read = read_prediction(load_words(chapter, ENGLISH)(name))
    assert len(read.answers) > 1
    if any(answer.reply for answer in read.answers):  # chosen: the answer, then the reply
        replies = [answer.reply for answer in read.answers if answer.mark != "x"]
    else:  # drawn: the reply alone, by the mistake
        replies = [answer.text for answer in read.answers]
        assert " " in {answer.mark for answer in read.answers}
        assert len({answer.mark for answer in read.answers}) == len(read.answers)
    assert all(replies)
    assert len(set(replies)) == len(replies)


class RecordedChapter:
    """Stands in for a chapter and notes what it is asked to draw."""

    def __init__(self, chapter: str) -> None:
        self.words = load_words(chapter, ENGLISH)
        self.sketches: list[tuple[str, Board, Callable[[], Truth]]] = []

    def draw_on_figure(self, name: str, on: OnFigure, truth: Callable[[], Truth]) -> None:
        self.sketches.append((name, on.board, truth))


def _sketches() -> Iterator[tuple[str, str, Board, Callable[[], Truth]]]:
    for chapter in all_chapters()[1:]:
        path = page_file(chapter).parent / "parts.py"
        if path.is_file() and "draw_on_figure(" in path.read_text("utf-8"):
            module, recorded = import_module(f"pages.{folder(chapter)}.parts"), RecordedChapter(chapter)
            for draw in vars(module).values():
                if (
                    isfunction(draw)
                    and [*signature(draw).parameters] == ["chapter"]
                    and "draw_on_figure(" in inspect.getsource(inspect.unwrap(draw))
                ):
                    inspect.unwrap(draw)(recorded)
            yield from ((chapter, *sketch) for sketch in recorded.sketches)


SKETCHES = list(_sketches())


@pytest.mark.parametrize(("chapter", "name", "board", "find"), SKETCHES, ids=[f"{s[0]}-{s[1]}" for s in SKETCHES])
def test_who_draws_the_truth_is_right_and_each_mistake_is_known(
    chapter: str, name: str, board: Board, find: Callable[[], Truth]
) -> None:
    """Drawn as a reader draws it: within the picture, in whole levels."""
    truth = find()
    replies = {answer.mark for answer in read_prediction(load_words(chapter, ENGLISH)(f"exercise.{name}")).answers}
    assert replies == {"x", " ", *truth.mistakes}
    for mark, values in {"x": truth.values, **truth.mistakes}.items():
        levels = [TOP * value if board.kind == "weights" else value for value in board.levels(values)]
        drawn = board.read("".join(f"{min(max(round(level), 0), TOP):02}" for level in levels))
        assert drawn is not None
        assert board.judge(drawn, truth.values, truth.mistakes) == mark


CURVE = Board("curve", (0.0, 1.0, 2.0), -1.0, 1.0)
ROW = Board("weights", names=("a", "b", "c"))
STAR = Board("star", (0.0, 4.0), 0.0, 3.0)


@given(st.lists(st.integers(0, 99), min_size=3, max_size=3))
def test_levels_are_shares_of_the_picture_and_come_back(levels: list[int]) -> None:
    read = CURVE.read("".join(f"{level:02}" for level in levels))
    assert read is not None
    assert CURVE.levels(read) == levels
    assert CURVE.read("009933") == pytest.approx([-1, 1, -1 / 3])
    assert ROW.read("102030") == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    assert STAR.read("9933") == pytest.approx([4, 1])
    assert STAR.levels(np.array([4.0, 1.0])) == [99, 33]
    assert ROW.levels(np.array([0.5, 0.5, 0.0])) == [0.5, 0.5, 0]
    for text in (None, "", "1234", "1234567", "12345x", "١٢٣٤٥٦", "00000\n", " 12345", "<script>"):
        assert CURVE.read(text) is None
    assert ROW.read("000000") is None


def test_distances_by_hand() -> None:
    assert CURVE.distance(np.array([0.0, 0.0, 0.0]), np.array([1.0, -1.0, 0.5])) == pytest.approx(2.5 / 3)
    assert ROW.distance(np.array([1.0, 0.0, 0.0]), np.array([0.25, 0.75, 0.0])) == 0.75
    assert STAR.distance(np.array([0.0, 0.0]), np.array([3.0, 4.0])) == 5


@pytest.mark.parametrize(
    ("guess", "mark"),
    [
        ([0.6, 0.4, 0.0], "x"),
        ([0.9, 0.1, 0.0], "one"),
        ([0.1, 0.0, 0.9], "other"),
        ([0.7, 0.3, 0.0], " "),  # as near to the one as to the truth
    ],
)
def test_a_guess_is_right_or_a_mistake_or_neither(guess: list[float], mark: str) -> None:
    truth = np.array([0.5, 0.5, 0.0])
    mistakes = {"one": np.array([1.0, 0.0, 0.0]), "other": np.array([0.0, 0.0, 1.0])}
    assert ROW.judge(np.array(guess), truth, mistakes) == mark
    assert ROW.judge(np.array([0.0, 1.0, 0.0]), truth, {}) == " "
