"""The scoring chapter through AppTest: the reader's numbers, the debugger's verdicts, and no address breaks it."""

import math
import re
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.scoring_functions.scores import WordQuery, _steps_to_largest
from pages.scoring_functions.typed_numbers import TypedNumbersError, read_batches, read_lengths
from tests.pages.reading import charts, claim_names, figure_names, figures_alt, marks, one_line
from tests.visits import Visits
from ui.text.words import load_words
from viz_core.attention import masked_softmax
from viz_core.attention.scores import FUNCTIONS
from viz_core.lessons.scoring_functions.mask_variants import MASK_VARIANTS
from viz_core.lessons.scoring_functions.score_contest import SCENES, WordScores, contest
from viz_core.pretrained.token_vectors import Tokens

OpenPage = Callable[..., AppTest]
CHAPTER = "scoring-functions"
MAIN = {"row", "words"}  # drawn whether or not the typed scores can be read
SCALING = {"spread", "histogram", "sharpness"}
OTHERS = SCALING | {"sentences", "plane", "terms", "kept", "scores", "toy"}
MASK = {"open-all": "false", "sf-open-mask": "true"}  # of its sections, the one that reads the typed scores
READ = {"weights", "gradient", "mask", "output"}
BOOK = torch.tensor([[[0.0, 1, 7, -3], [-2, 0.5, 1, 0]], [[1, 1, 1, 1], [0, 3, 0.5, -2]]])


def rows(weights: torch.Tensor) -> str:
    """Weights (batch, queries, keys) as the text says them, each row by its name."""
    return "; ".join(
        f"batch {b}, query {q}: {', '.join(f'{weight:.4f}' for weight in row)}"
        for b, each in enumerate(weights.tolist(), 1)
        for q, row in enumerate(each, 1)
    )


def test_opens_with_the_published_row(visits: Visits) -> None:
    app = visits(CHAPTER)
    weights = masked_softmax(BOOK, torch.tensor([2, 3]))
    assert "batch 1, query 1: 0.2689, 0.7311, 0.0000, 0.0000; batch 1, query 2: " in figures_alt(app)
    assert rows(weights) in figures_alt(app)
    assert set(figure_names(app)) == MAIN | READ | OTHERS
    assert figure_names(app).count("mask") == len(MASK_VARIANTS)
    assert {"sums", "hidden", "formula", "zero-sum", "unwritten", "guarded", "variance"} <= set(claim_names(app))


def test_examples_fill_the_boxes_with_lengths_per_row_per_query_or_none(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **MASK | {"sf-scores": "5 5"})
    for name, lengths, kind, tensor in (
        ("book", "2 3", "One length per batch row", torch.tensor([2, 3])),
        ("each", "1 3; 2 4", "One length per query", torch.tensor([[1, 3], [2, 4]])),
        ("blind", "0 4; 2 1", "One length per query", torch.tensor([[0, 4], [2, 1]])),
        ("none", "", "No mask", None),
    ):
        app.button(key=f"sf-example-{name}").click().run()
        assert app.text_area(key="sf-scores").value.startswith("0 1 7 −3")
        assert app.text_input(key="sf-lengths").value == lengths
        assert "= (2, 2, 4)" in one_line(app)
        assert kind in one_line(app)
        assert rows(masked_softmax(BOOK, tensor)) in figures_alt(app)


UNREADABLE = [("0 <b>", "", "Line 1 contains <b>, which is not a number"), ("0 1", "5", "The valid length 5 exceeds")]


def test_what_cannot_be_read_is_a_sentence_and_nothing_typed_is_lost(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    for scores, lengths, sentence in UNREADABLE:
        app.text_area(key="sf-scores").set_value(scores)
        app.text_input(key="sf-lengths").set_value(lengths).run()
        assert len(app.warning) == 1
        assert sentence in app.warning[0].value.replace("\\", "")
        assert app.text_area(key="sf-scores").value == scores
        assert app.text_input(key="sf-lengths").value == lengths
        assert "as soon as your scores can be read" in one_line(app)  # the debugger waits, the tabs work
        assert set(figure_names(app)) == MAIN | OTHERS
    app.text_input(key="sf-text").set_value("").run()
    assert set(figure_names(app)) == MAIN | OTHERS, "of the last sentence"


def _half_overflows() -> bool:
    """Whether torch writes −1e6 into float16 as −∞, as before 2.15, and does not refuse."""
    try:
        torch.zeros(1, dtype=torch.float16)[torch.tensor([True])] = -1e6
    except RuntimeError:
        return False
    return True


def test_the_debugger_names_leaks_overflows_and_writing(visits: Visits) -> None:
    text = one_line(visits(CHAPTER, **MASK))
    assert text.count("No weight on a masked key at any length") == 2
    assert text.count("**Leaks** at length 0: up to 1 of the weight") == 1
    overflows = _half_overflows()
    assert text.count("**NaN** at length 0") == 1 + overflows
    assert text.count("**torch refuses** at length 0, 1, 2, 3, 4: value cannot be converted") == 1
    assert text.count("**torch refuses** at length 0, 1, 2, 3: value cannot be converted") == 1 - overflows
    assert text.count("**Overflows**") == overflows
    assert text.count("**Changes its input**") == 1 + overflows
    assert text.count("Leaves its input unchanged") == 5 - overflows


def test_every_score_of_a_scene_of_two_widths(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"sf-section": "Functions compared", "open-all": "false"})
    app.segmented_control(key="sf-scene").set_value("widths").run()
    entries, labels = contest(SCENES["widths"](0), 8, 0), load_words(CHAPTER, "en").group("option")
    defined = [entry for entry in entries.values() if entry.scores is not None]
    assert [alt.split(":")[0] for alt, _ in charts(app, "scores")] == [labels[entry.name] for entry in defined]
    undefined = [info.value for info in app.info if "have no dot product" in info.value]
    assert len(undefined) == len(FUNCTIONS) - len(defined)
    assert "Widths 20 and 2" in undefined[0]
    found = [f"own key: {entry.found:.0%}" for entry in defined if not math.isnan(entry.found)]
    assert re.findall(r"own key: \d+%", one_line(app)) == found
    assert list(app.dataframe[0].value["Parameters"]) == [entry.parameters for entry in entries.values()]
    assert all(holds for holds, _ in marks(app).values())


@pytest.mark.parametrize(
    "text",
    [
        "0 1 7 -3\n2 .5 1e0 0\n\n1 1 1 1\n0 3 2 4",
        "0, 1, 7, -3\r\n2, 0.5, 1, 0\r\n \r\n1; 1; 1; 1\r\n0\t3\t2\t4\r\n\r\n",
        "0; 1; 7; −3\n2; 0,5; 1,0; 0\n\n1; 1; 1; 1\n0; 3; 2; 4",
        "0,1,7,-3\n2,.5,1,0\n\n1,1,1,1\n0,3,2,4",
        "[[[0. 1. 7. -3.]\n  [2. 0.5 1. 0.]]\n\n [[1. 1. 1. 1.]\n  [0. 3. 2. 4.]]]",
        "tensor([[[0.0, 1.0, 7.0, −3.0],\n [2.0, 0.5, 1.0, 0.0]],\n\n [[1, 1, 1, 1],\n [0, 3, 2, 4]]],\n dtype=float)",
    ],
)
def test_typed_pasted_and_printed(text: str) -> None:
    expected = [[[0.0, 1.0, 7.0, -3.0], [2.0, 0.5, 1.0, 0.0]], [[1.0, 1.0, 1.0, 1.0], [0.0, 3.0, 2.0, 4.0]]]
    assert read_batches(text).tolist() == expected


UNREAD: list[tuple[str, str, dict[str, object]]] = [
    ("", "empty", {}),
    ("[[]]", "empty", {}),
    ("0 1\n\n2 nan", "not-a-number", {"row": 2, "cell": "nan"}),
    ("1e39 0", "too-large", {"row": 1, "cell": "1e39"}),
    ("0 1 2\n3 4", "ragged", {"row": 2, "found": 2, "expected": 3}),
    ("0 1\n2 3\n\n4 5", "uneven", {"batch": 2, "found": 1, "expected": 2}),
    ("1\n\n" * 5, "too-many", {"what": "batches", "found": 5, "most": 4}),
    ("1 " * 13, "too-many", {"what": "columns", "found": 13, "most": 12}),
]
NO_LENGTHS: list[tuple[str, str, dict[str, object]]] = [
    ("2 two", "no-length", {"cell": "two", "most": 4}),
    ("2 inf", "no-length", {"cell": "inf", "most": 4}),
    ("2 5", "length", {"cell": "5", "most": 4}),
    ("-1 2", "length", {"cell": "-1", "most": 4}),
    ("1 2 3", "count", {"found": 3, "rows": 2, "queries": 4}),
]


@pytest.mark.parametrize("read", [read_batches, lambda text: read_lengths(text, 2, 2, 4)])
def test_refused_with_the_place(read: Callable[[str], object]) -> None:
    for text, reason, values in UNREAD if read is read_batches else NO_LENGTHS:
        with pytest.raises(TypedNumbersError) as error:
            read(text)
        assert (error.value.reason, error.value.values) == (reason, values)


@settings(max_examples=150)
@given(st.text(alphabet="0123456789.-+eE[](),; \n\tnaifxtensor−", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        scores = read_batches(text)
    except TypedNumbersError:
        return
    assert scores.dim() == 3
    assert scores.numel() > 0
    assert scores.isfinite().all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2 3", [2, 3]), ("1 3; 2 4", [[1, 3], [2, 4]]), ("tensor([[1, 3],\n [2, 0]])", [[1, 3], [2, 0]])],
)
def test_lengths(text: str, expected: list[object]) -> None:
    lengths = read_lengths(text, 2, 2, 4)
    assert lengths is not None
    assert lengths.tolist() == expected
    assert lengths.dtype == torch.long


def test_the_steps_from_product_to_weight_follow_from_each_other() -> None:
    """Of two keys along a query of four components: 8 / 2 = 4 and 0 / 2 = 0, so e^4 of e^4 + 1."""
    made = WordScores(torch.full((1, 4), 2.0), torch.tensor([[0.0, 0, 0, 0], [1, 1, 1, 1]]))
    steps = _steps_to_largest(WordQuery(Tokens(("a", "b"), torch.zeros(2, 4), 1, 2, 2), made, 0))
    assert (steps["product"], steps["score"], steps["exponential"]) == ("8.00", "4.000", "54.6")
    assert (steps["key"], steps["sum"], steps["weight"]) == ("b", "55.6", "0.98")
