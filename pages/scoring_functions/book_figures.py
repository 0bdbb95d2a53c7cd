"""A batch of sentences with its blanks, and the weights of the book's toy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from pages.scoring_functions.number_grid import number_grid
from ui.text.numbers import ENGLISH, with_separators
from ui.widgets.figure_style import Labels


def sentences_figure(
    weights: Float[np.ndarray, "sentences tokens"],
    sentences: Sequence[Sequence[str]],
    labels: Labels,
    separators: str = ENGLISH,
) -> go.Figure:
    """A row a sentence: its words with their weights, in these separators; blanks are empty frames."""
    rows, columns = weights.shape
    shown = np.array([[i < len(words) for i in range(columns)] for words in sentences])
    across = [str(i + 1) for i in range(columns)]
    down = [str(i + 1) for i in range(rows)]
    figure = number_grid(weights, down, across, labels["token"], labels["sentence"], shown=shown, cell=48)
    cells, empty = figure.data
    cells.text = [
        [f"{word}<br>{with_separators(f'{weights[i, j]:.2f}', separators)}" for j, word in enumerate(words)]
        + [""] * (columns - len(words))
        for i, words in enumerate(sentences)
    ]
    empty.text = np.where(shown, "", labels["blank"])
    return figure


def toy_figure(rows: Float[np.ndarray, "4 keys"], lengths: Sequence[int], labels: Labels) -> go.Figure:
    """The weights of both batch rows, and below them the same after dropout; keys beyond a row's length are empty."""
    keys = rows.shape[1]
    shown = np.array([[key < length for key in range(keys)] for length in (*lengths, *lengths)])
    names = [labels["weights-of"].format(row=i + 1) for i in range(2)]
    names += [labels["dropped-of"].format(row=i + 1) for i in range(2)]
    return number_grid(
        rows, names, [str(key + 1) for key in range(keys)], labels["key"], "", shown=shown, digits=2, cell=40
    )
