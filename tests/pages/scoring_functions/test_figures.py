"""The figures of the chapter on scoring functions, and numbers that are typed there."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.scoring_functions.figures import number_grid
from pages.scoring_functions.scores import WordQuery, _steps_to_largest
from pages.scoring_functions.typed_numbers import TypedNumbersError, read_batches, read_lengths
from viz_core.lessons.scoring_functions.score_contest import WordScores
from viz_core.pretrained.token_vectors import Tokens


def test_a_grid_of_numbers_with_masked_cells() -> None:
    values = np.array([[0.25, 0.75, 0.0], [-0.0001, 1.0, np.nan]], dtype=np.float32)
    shown = np.array([[True, True, False], [True, True, True]])
    figure = number_grid(values, ["a", "b"], ["1", "2", "3"], "key", "query", shown=shown)
    cells, masked = figure.data
    assert cells.z.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(cells.z), [[False, False, True], [False, False, True]])
    assert [list(row) for row in cells.text] == [["0.250", "0.750", ""], ["0.000", "1.000", ""]]  # no minus zero
    assert [list(row) for row in masked.text] == [["", "", "0"], ["", "", ""]]  # NaN is not a zero
    assert (cells.zmin, cells.zmax) == (0, 1)
    assert list(figure.layout.yaxis.range) == [1.5, -0.5]  # first row on top
    assert figure.layout.xaxis.title.text == "key"


@pytest.mark.parametrize(
    "text",
    [
        "0 1 7 -3\n2 .5 1e0 0\n\n1 1 1 1\n0 3 2 4",
        "0, 1, 7, -3\r\n2, 0.5, 1, 0\r\n \r\n1; 1; 1; 1\r\n0\t3\t2\t4\r\n\r\n",
        "0 1 7 −3\n2 0,5 1 0\n\n1 1 1 1\n0 3 2 4",
        "0; 1; 7; −3\n2; 0,5; 1,0; 0\n\n1; 1; 1; 1\n0; 3; 2; 4",
        "0,1,7,-3\n2,.5,1,0\n\n1,1,1,1\n0,3,2,4",
        "[[[0, 1, 7, -3], [2, 0.5, 1, 0]], [[1, 1, 1, 1], [0, 3, 2, 4]]]",
        "[[[0. 1. 7. -3.]\n  [2. 0.5 1. 0.]]\n\n [[1. 1. 1. 1.]\n  [0. 3. 2. 4.]]]",
        "tensor([[[0.0, 1.0, 7.0, −3.0],\n [2.0, 0.5, 1.0, 0.0]],\n\n [[1, 1, 1, 1],\n [0, 3, 2, 4]]],\n dtype=float)",
    ],
)
def test_typed_pasted_and_printed(text: str) -> None:
    expected = [[[0.0, 1.0, 7.0, -3.0], [2.0, 0.5, 1.0, 0.0]], [[1.0, 1.0, 1.0, 1.0], [0.0, 3.0, 2.0, 4.0]]]
    assert read_batches(text).tolist() == expected


@settings(max_examples=40)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 6))
def test_what_torch_prints_is_read_back(batch: int, rows: int, columns: int) -> None:
    scores = (torch.randn(batch, rows, columns) * 10).round()
    assert torch.equal(read_batches(str(scores)), scores)
    assert torch.equal(read_batches(str(scores.tolist())), scores)


@pytest.mark.parametrize(
    ("text", "reason", "values"),
    [
        ("", "empty", {}),
        (" \n\n ", "empty", {}),
        ("[[]]", "empty", {}),
        ("0 1\n2 x", "not-a-number", {"row": 2, "cell": "x"}),
        ("0 1\n\n2 nan", "not-a-number", {"row": 2, "cell": "nan"}),
        ("0 -inf", "too-large", {"row": 1, "cell": "-inf"}),
        ("1e39 0", "too-large", {"row": 1, "cell": "1e39"}),
        ("0 1 2\n3 4", "ragged", {"row": 2, "found": 2, "expected": 3}),
        ("0 1\n2 3\n\n4 5", "uneven", {"batch": 2, "found": 1, "expected": 2}),
        ("1\n\n" * 5, "too-many", {"what": "batches", "found": 5, "most": 4}),
        ("1\n" * 9, "too-many", {"what": "rows", "found": 9, "most": 8}),
        ("1 " * 13, "too-many", {"what": "columns", "found": 13, "most": 12}),
    ],
)
def test_refused_with_the_place(text: str, reason: str, values: dict[str, object]) -> None:
    with pytest.raises(TypedNumbersError) as error:
        read_batches(text)
    assert (error.value.reason, error.value.values) == (reason, values)
    assert str(error.value)


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
    [
        ("2 3", [2, 3]),
        ("[2, 3.0]", [2, 3]),
        ("1 3; 2 4", [[1, 3], [2, 4]]),
        ("tensor([[1, 3],\n [2, 0]])", [[1, 3], [2, 0]]),
    ],
)
def test_lengths(text: str, expected: list[object]) -> None:
    lengths = read_lengths(text, 2, 2, 4)
    assert lengths is not None
    assert lengths.tolist() == expected
    assert lengths.dtype == torch.long


@pytest.mark.parametrize(
    ("text", "reason", "values"),
    [
        ("2 two", "no-length", {"cell": "two", "most": 4}),
        ("2 1.5", "no-length", {"cell": "1.5", "most": 4}),
        ("2 inf", "no-length", {"cell": "inf", "most": 4}),
        ("2 5", "length", {"cell": "5", "most": 4}),
        ("-1 2", "length", {"cell": "-1", "most": 4}),
        ("1 2 3", "count", {"found": 3, "rows": 2, "queries": 4}),
    ],
)
def test_lengths_refused(text: str, reason: str, values: dict[str, object]) -> None:
    with pytest.raises(TypedNumbersError) as error:
        read_lengths(text, 2, 2, 4)
    assert (error.value.reason, error.value.values) == (reason, values)


def test_the_steps_from_product_to_weight_follow_from_each_other() -> None:
    """Of two keys along a query of four components: 8 / 2 = 4 and 0 / 2 = 0, so e^4 of e^4 + 1."""
    made = WordScores(torch.full((1, 4), 2.0), torch.tensor([[0.0, 0, 0, 0], [1, 1, 1, 1]]))
    steps = _steps_to_largest(WordQuery(Tokens(("a", "b"), torch.zeros(2, 4), 1, 2, 2), made, 0))
    assert (steps["product"], steps["score"], steps["exponential"]) == ("8.00", "4.000", "54.6")
    assert (steps["key"], steps["sum"], steps["weight"]) == ("b", "55.6", "0.98")
