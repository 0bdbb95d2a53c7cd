"""Small matrices with their numbers in the cells."""

from __future__ import annotations

import numpy as np

from pages.scoring_functions.figures import number_grid


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


def test_signed_values_are_coloured_around_zero() -> None:
    figure = number_grid(np.array([[-2.0, 1.0]], dtype=np.float32), ["a"], ["1", "2"], "", "", limit=2.0)
    (cells,) = figure.data
    assert (cells.zmin, cells.zmax) == (-2.0, 2.0)
    assert list(cells.text[0]) == ["−2.000", "1.000"]
