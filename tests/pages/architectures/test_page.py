"""The architectures chapter through AppTest: the table and the paths are the library's, and no address breaks it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from pages.architectures.parts import nearer_end
from tests.pages.reading import badges, claim_names, figure_names, texts
from tests.visits import Visits
from ui.text.words import load_words
from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, layer_cost, longest_path

OpenPage = Callable[..., AppTest]
CHAPTER = "architectures"
DRAWN = {"curves", "graph", "centred", *(f"network-{name}" for name in ARCHITECTURES)}
WORDS = load_words(CHAPTER, "en")("sentence").split()
STOPWATCH, PAIRS, SHUFFLE = "Stopwatch", "Every pair", "Shuffle the words"  # tabs of old links


def test_opens_with_the_table_in_the_readers_numbers(visits: Visits) -> None:
    app = visits(CHAPTER)
    for name in ARCHITECTURES:
        cost = layer_cost(name, LayerSizes(12, 512, 3, 4))
        longest = longest_path(name, LayerSizes(12, 512, 3, 4))
        assert f"| {cost.order:,} | *{cost.counted:,}* |" in texts(app)
        assert f" | *{longest:.0f}* |" in texts(app)
    assert "| Convolution, dilated (k = 3) | 3 |" in texts(app)
    assert "| Convolution, contiguous (k = 3) | 6 |" in texts(app)
    assert {"too-early", "in-time"} <= set(claim_names(app))
    assert all(badges(app).values())
    assert set(figure_names(app)) >= DRAWN
    assert not any("The address asks for" in caption.value for caption in app.caption)


def test_sizes_move_table_paths_and_crossings(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    app.select_slider(key="a-n").set_value(4096)
    app.select_slider(key="a-d").set_value(64)
    app.slider(key="a-k").set_value(5)
    app.select_slider(key="a-r").set_value(7).run()
    assert not app.exception
    sizes = LayerSizes(4096, 64, 5, 7)
    for name in ARCHITECTURES:
        assert f"| {layer_cost(name, sizes).order:,} | *{layer_cost(name, sizes).counted:,}* |" in texts(app)
    assert f"| *{longest_path('dilated', sizes)}* |" in texts(app)
    assert "The pictures show the first 16 of 4,096 tokens" in texts(app)
    assert "**n = d = 64**" in texts(app)
    assert "**n = k d = 320**" in texts(app)
    assert all(badges(app).values())


def test_two_tokens_in_either_order(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    for one, other in ((3, 9), (9, 3), (11, 12)):
        app.selectbox(key="a-from").set_value(one)
        app.selectbox(key="a-to").set_value(other).run()
        assert not app.exception
        distance = abs(other - one)
        assert f"**Path from *{WORDS[one - 1]}* to *{WORDS[other - 1]}***, {distance} apart" in texts(app)
        assert f"| Recurrent | {distance if one < other else '∞'} |" in texts(app)
        assert f"| Self-attention | {1 if one < other else '∞'} |" in texts(app)
        assert sum("no signal from" in words for words in badges(app)) == (0 if one < other else 1)
        assert all(badges(app).values())


def test_the_permutation_test(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"a-section": SHUFFLE})
    found = badges(app)
    assert found["self-attention: shuffled words give the same outputs, shuffled"]
    assert found["the mean of its outputs does not change"]
    assert sum("the order changes the outputs" in words for words in found) == 4
    assert all(found.values())
    app.slider(key="a-order").set_value(2).run()
    assert all(badges(app).values())


@pytest.mark.parametrize("text", ["", "cat cat cat"])
def test_nothing_to_shuffle_is_a_sentence(open_page: OpenPage, text: str) -> None:
    app = open_page(CHAPTER, **{"a-section": SHUFFLE})
    app.text_input(key="a-text").set_value(text).run()
    assert not app.exception
    assert "at least two different words" in "".join(info.value for info in app.info)


def test_without_a_model_words_are_shuffled_all_the_same(no_checkpoints: None, open_page: OpenPage) -> None:
    assert all(badges(open_page(CHAPTER, **{"a-section": SHUFFLE})).values())


def test_the_stopwatch_measures_a_step_each_time_and_finishes(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"a-section": STOPWATCH, "a-most": "256", "a-width": "64", "open-all": "false"})
    assert "One click times every layer" in "".join(info.value for info in app.info)
    app.button(key="a-stopwatch-start").click().run()
    assert not app.exception
    assert app.button(key="a-stopwatch-start").disabled
    for _ in range(25):  # five layers at five lengths
        app.run()
        assert not app.exception
    assert "Finished: 25 of 25" in texts(app)
    table = app.dataframe[0].value
    assert list(table.iloc[:, 1]) == ["128 → 256"] * 5
    sizes = [LayerSizes(n, 64, 3, 4) for n in (128, 256)]
    before, after = (layer_cost("attention", size).counted for size in sizes)
    assert table.iloc[0, 3] == pytest.approx(after / before)
    assert not app.button(key="a-stopwatch-start").disabled


def test_the_stopwatch_stops_where_it_is(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"a-section": STOPWATCH, "a-most": "256", "a-width": "64", "open-all": "false"})
    app.button(key="a-stopwatch-start").click().run()
    app.run()
    app.button(key="a-stopwatch-stop").click().run()
    assert not app.exception
    stopped = re.search(r"Stopped after (\d+) of 25: width 64", texts(app))
    assert stopped
    done = int(stopped[1])
    assert 1 <= done < 25
    app.run()
    assert f"Stopped after {done} of 25" in texts(app)


def test_the_chart_that_breaks_shows_no_path(visits: Visits) -> None:
    app = visits(CHAPTER, **{"a-break": "a layer too few"})
    found = badges(app)
    assert [holds for words, holds in found.items() if "as many layers as its path" in words]
    assert figure_names(app).count("network-convolution") == 2


@pytest.mark.parametrize(("token", "end"), [(1, "from"), (4, "from"), (8, "to"), (12, "to")])
def test_a_click_on_a_token_moves_the_nearer_end_of_the_path(token: int, end: str) -> None:
    assert nearer_end(1, 12, token) == end
    assert nearer_end(12, 1, token) == {"from": "to", "to": "from"}[end]
