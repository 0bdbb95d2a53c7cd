"""What a figure says of itself: names in a row and words by their number, as the language has them."""

from __future__ import annotations

import pytest

from tests.viz_core.view.attention_groups import make_group
from viz_core.view.components import view_words
from viz_core.view.payload import View
from viz_core.view.state import DisplayOptions, ViewState
from viz_core.view.visible_map import fill, lines, panels


@pytest.mark.parametrize(
    ("language", "title", "heads"),
    [
        ("en", "Mean of 3 heads", "Heads: L1 h1, L1 h2, L1 h3."),
        ("pt-BR", "Média de 3 cabeças", "Cabeças: L1 h1, L1 h2, L1 h3."),
        ("zh-TW", "3 個頭的平均", "頭：L1 h1、L1 h2、L1 h3。"),
    ],
)
def test_several_heads_are_named_in_a_row(language: str, title: str, heads: str) -> None:
    group = make_group(5, 7, heads=4)
    state = ViewState(group.id, 0, 0, display=DisplayOptions(heads="0.0_0.1_0.2"))
    view = View((group,), view_words(language), language=language)
    (shown,) = panels(view, state)
    assert shown.title == title
    assert lines(view, state, [shown])[0] == heads


def test_words_go_by_their_number() -> None:
    text = "{count} {count:head|heads} of {model}"
    assert [fill(text, count=count, model="{count}") for count in (1, 2)] == ["1 head of {count}", "2 heads of {count}"]
