"""Figures of chapters, their predictions, and examples of messages."""

import re
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.source_files import ROOT
from ui.blocks.over_picture import over_picture_figure, signed_image, weights_image
from ui.chapter.contents import all_chapters
from ui.text.words import ENGLISH, load_words
from ui.widgets.predictions import Board, read_prediction
from viz_core.view import components as theme

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
    pairs = [(text, g) for text in (colours["textColor"], colours["linkColor"], *categories[:4:3]) for g in grounds]
    app_css = (ROOT / "assets/components/app.css").read_text("utf-8")
    code = re.findall(r"\.token.*? \{ color: light-dark\((#\w{6}), (#\w{6})\); \}", app_css)
    assert len(code) == 5
    pairs += [(each[mode == "dark"], colours["codeBackgroundColor"]) for each in code]
    assert [pair for pair in pairs if contrast(*pair) < 4.5] == []  # WCAG, success criterion 1.4.3, for small text
    shown = dict(re.findall(r"--st-([\w-]+)-color: (#\w{6});", css))
    names = ("text", "background", "primary")
    assert [shown[name] for name in names] == [colours[f"{name}Color"] for name in names]
    assert ",".join(categories[:4]) in css


def test_maps_over_a_picture_and_as_pictures_are_not_transposed() -> None:
    maps = np.array([[0.0, 0.25, 0.25], [1.0, 1.0, 0.25]], dtype=np.float32)
    labels = dict.fromkeys(("row", "column", "weight"), "")
    figure = over_picture_figure(Image.new("L", (12, 8)), {"a": maps}, (1, 0), labels)
    (heatmap,), (image,) = figure.data, figure.layout.images
    np.testing.assert_array_equal(heatmap.z, maps)
    assert (image.sizex, image.sizey, figure.layout.yaxis.autorange) == (3, 2, "reversed")
    assert {(box.x0, box.x1, box.y0, box.y1) for box in figure.layout.shapes} == {(0.5, 1.5, 1.5, 2.5)}
    picture = weights_image(maps, side=3)
    assert [picture.getpixel(place) for place in ((0, 0), (0, 1))] == [(68, 1, 84), (253, 231, 37)]
    picture = signed_image(np.array([[-2.0, 0.0, 1.0]], dtype=np.float32), limit=1.0, side=30)
    assert [picture.getpixel((x, 5)) for x in (5, 15, 25)] == [(5, 48, 97), (247, 247, 247), (103, 0, 31)]


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
