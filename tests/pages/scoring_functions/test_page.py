"""The scoring chapter through AppTest: the reader's numbers, the debugger's verdicts, and no address breaks it."""

import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.pages.reading import charts, claim_names, figure_names, figures_alt, marks, value_of
from tests.visits import Visits
from ui.text import words
from ui.text.words import load_words
from viz_core.attention import masked_softmax
from viz_core.attention.scores import FUNCTIONS
from viz_core.attention.scores.function import ScoreCost, ScoringFunction
from viz_core.lessons.scoring_functions.mask_variants import MASK_VARIANTS
from viz_core.lessons.scoring_functions.scaling import measure_width
from viz_core.lessons.scoring_functions.score_contest import SCENES, contest

OpenPage = Callable[..., AppTest]
CHAPTER = "scoring-functions"
TABS = ("Why 1/√d", "The Gaussian, taken apart", "Functions compared")
MAIN = {"row", "words"}  # drawn whether or not the typed scores can be read
SCALING = {"spread", "histogram", "sharpness"}
OTHERS = SCALING | {"sentences", "plane", "terms", "kept", "scores", "toy"}
MASK = {"open-all": "false", "sf-open-mask": "true"}  # of its sections, the one that reads the typed scores
READ = {"weights", "gradient", "mask", "output"}
BOOK = torch.tensor([[[0.0, 1, 7, -3], [-2, 0.5, 1, 0]], [[1, 1, 1, 1], [0, 3, 0.5, -2]]])


def texts(app: AppTest) -> str:
    return "\n".join(element.value for element in [*app.markdown, *app.caption]).replace("\\", "").replace("−", "-")


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
    assert "6 of 16 cells are masked" in figures_alt(app)
    assert "(batch rows, queries, keys) = (2, 2, 4)" in texts(app)
    assert set(figure_names(app)) == MAIN | READ | OTHERS
    assert figure_names(app).count("mask") == len(MASK_VARIANTS)
    assert all(holds for holds, _ in marks(app).values())
    assert {"sums", "hidden", "formula", "zero-sum", "unwritten", "guarded", "variance"} <= set(claim_names(app))
    assert not any("The address asks for" in caption.value for caption in app.caption)


def test_scores_can_be_edited_and_change_shape(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    app.text_area(key="sf-scores").set_value("1 2 3\n4 5 7").run()
    app.text_input(key="sf-lengths").set_value("1 3").run()
    assert not app.exception
    weights = masked_softmax(torch.tensor([[[1.0, 2, 3], [4, 5, 7]]]), torch.tensor([[1, 3]]))
    assert rows(weights) in figures_alt(app)
    assert "One length per query" in texts(app)
    assert all(holds for holds, _ in marks(app).values())


def test_examples_fill_the_boxes_with_lengths_per_row_per_query_or_none(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **MASK | {"sf-scores": "5 5"})
    for name, lengths, kind, tensor in (
        ("book", "2 3", "One length per batch row", torch.tensor([2, 3])),
        ("each", "1 3; 2 4", "One length per query", torch.tensor([[1, 3], [2, 4]])),
        ("blind", "0 4; 2 1", "One length per query", torch.tensor([[0, 4], [2, 1]])),
        ("none", "", "No mask", None),
    ):
        app.button(key=f"sf-example-{name}").click().run()
        assert not app.exception
        assert app.text_area(key="sf-scores").value.startswith("0 1 7 −3")
        assert app.text_input(key="sf-lengths").value == lengths
        assert "= (2, 2, 4)" in texts(app)
        assert kind in texts(app)
        assert rows(masked_softmax(BOOK, tensor)) in figures_alt(app)


def test_a_row_that_may_see_nothing_is_named_and_holds(visits: Visits) -> None:
    app = visits(CHAPTER, **MASK | {"sf-lengths": "0 4; 2 0"})
    assert "batch 1, query 1, batch 2, query 2: every key is masked" in app.info[0].value
    assert "0.0000, 0.0000, 0.0000, 0.0000" in figures_alt(app)
    assert all(holds for holds, _ in marks(app).values())


# One refusal of either box; test_typed_numbers.py has all.
UNREADABLE = [("0 <b>", "", "Line 1 contains <b>, which is not a number"), ("0 1", "5", "The valid length 5 exceeds")]


def test_what_cannot_be_read_is_a_sentence_and_nothing_typed_is_lost(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    for scores, lengths, sentence in UNREADABLE:
        app.text_area(key="sf-scores").set_value(scores)
        app.text_input(key="sf-lengths").set_value(lengths).run()
        assert not app.exception
        assert len(app.warning) == 1
        assert sentence in app.warning[0].value.replace("\\", "")
        assert app.text_area(key="sf-scores").value == scores
        assert app.text_input(key="sf-lengths").value == lengths
        assert "as soon as your scores can be read" in texts(app)  # the debugger waits, the tabs work
        assert set(figure_names(app)) == MAIN | OTHERS


def _half_overflows() -> bool:
    """Whether torch writes −1e6 into float16 as −∞, as before 2.15, and does not refuse."""
    try:
        torch.zeros(1, dtype=torch.float16)[torch.tensor([True])] = -1e6
    except RuntimeError:
        return False
    return True


def test_the_debugger_names_leaks_overflows_and_writing(visits: Visits) -> None:
    text = texts(visits(CHAPTER, **MASK))
    assert text.count("No weight on a masked key at any length") == 2
    assert text.count("**Leaks** at length 0: up to 1 of the weight") == 1
    overflows = _half_overflows()
    assert text.count("**NaN** at length 0") == 1 + overflows
    assert text.count("**torch refuses** at length 0, 1, 2, 3, 4: value cannot be converted") == 1
    assert text.count("**torch refuses** at length 0, 1, 2, 3: value cannot be converted") == 1 - overflows
    assert text.count("**Overflows**") == overflows
    assert text.count("**Changes its input**") == 1 + overflows
    assert text.count("Leaves its input unchanged") == 5 - overflows


def test_the_debugger_takes_any_row_and_scale(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **MASK)
    app.number_input(key="sf-row").set_value(2).run()
    app.segmented_control(key="sf-scale").set_value("times-10000000").run()
    assert not app.exception
    text = texts(app)
    assert "batch 1, query 2: -2 × 10⁷, 5 × 10⁶, 10⁷, 0" in text
    assert "**Leaks** at length 0, 1: up to 1 of the weight" in text
    assert "too large for float16" in text
    assert text.count("No weight on a masked key at any length") == 1


def test_why_the_root(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    for d, keys in ((1, 1), (1024, 64), (64, 16)):
        app.select_slider(key="sf-d").set_value(d)
        app.slider(key="sf-keys").set_value(keys).run()
        assert not app.exception
        width = measure_width(d, keys)
        assert f"variance **{width.variance:.2f}**, expected {d}." in texts(app)
        entropies = f"from {width.plain.entropy:.3f} to {width.scaled.entropy:.3f} of {math.log2(keys):.2f} bits"
        assert entropies in " ".join(texts(app).split())
        assert all(holds for holds, _ in marks(app).values())


def test_the_gaussian_with_keys_of_one_length_is_the_dot_product(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"sf-section": TABS[1]})
    assert any("different norms" in label for label in marks(app))
    app.segmented_control(key="sf-lengths-of-keys").set_value("one").run()
    holds, residual = next(value for label, value in marks(app).items() if "equal norm" in label)
    assert holds
    assert value_of(residual) < 1e-6
    app.slider(key="sf-x").set_value(-2.0)
    app.number_input(key="sf-count").set_value(1).run()
    assert not app.exception
    assert "The query at (-2.00, 0.50) and 1 key; key 1 has the largest weight" in figures_alt(app).replace("−", "-")
    assert all(holds for holds, _ in marks(app).values())


@pytest.mark.parametrize("scene", list(SCENES))
def test_every_score_of_every_scene(open_page: OpenPage, scene: str) -> None:
    app = open_page(CHAPTER, **{"sf-section": TABS[2], "open-all": "false"})
    app.segmented_control(key="sf-scene").set_value(scene).run()
    assert not app.exception
    entries, labels = contest(SCENES[scene](0), 8, 0), load_words(CHAPTER, "en").group("option")
    defined = [entry for entry in entries.values() if entry.scores is not None]
    assert [alt.split(":")[0] for alt, _ in charts(app, "scores")] == [labels[entry.name] for entry in defined]
    undefined = [info.value for info in app.info if "have no dot product" in info.value]
    assert len(undefined) == len(FUNCTIONS) - len(defined)
    if scene == "widths":
        assert "Widths 20 and 2" in undefined[0]
    found = [f"own key: {entry.found:.0%}" for entry in defined if not math.isnan(entry.found)]
    assert re.findall(r"own key: \d+%", texts(app)) == found
    assert list(app.dataframe[0].value["Parameters"]) == [entry.parameters for entry in entries.values()]
    assert all(holds for holds, _ in marks(app).values())


def test_one_more_score_is_one_entry_and_its_words(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """-||q - k||^2, entered in the register alone: its map, its formula, its line in the table."""
    distance = ScoringFunction(
        "distance",
        99,
        r"-\lVert q - k \rVert^2",
        lambda _, q, k: -torch.cdist(q, k).square(),
        lambda sizes: ScoreCost(0, sizes.batch * sizes.queries * sizes.keys * sizes.widths.key_size),
        one_width=True,
    )
    monkeypatch.setattr("pages.scoring_functions.scores.FUNCTIONS", (*FUNCTIONS, distance))
    monkeypatch.setattr(words, "TEXT", Path(shutil.copytree(words.TEXT, tmp_path / "text")))
    with (words.TEXT / "en" / f"{CHAPTER}.md").open("a", encoding="utf-8") as file:
        file.write("\n## option.distance\nDistance\n\n## formula.distance\n**Distance** ${formula}$\n")
    app = open_page(CHAPTER, **{"sf-section": TABS[2], "sf-draw": "987"})  # results are kept: a draw of its own
    assert figure_names(app).count("scores") == len(FUNCTIONS) + 1
    assert charts(app, "scores")[-1][0].startswith("Distance: queries in rows")
    assert any(element.value == r"**Distance** $-\lVert q - k \rVert^2$" for element in app.markdown)
    assert re.findall(r"own key: (\d+)%", texts(app))[-1] == "100"
    table = app.dataframe[0].value
    last = table.iloc[-1]
    assert last["Score"] == "Distance"
    assert (last["Parameters"], last["Multiplications for all pairs"]) == (0, 36 * 8)


def test_the_formulas_are_those_of_the_register(visits: Visits) -> None:
    text = texts(visits(CHAPTER, **{"sf-section": TABS[2]}))
    for function in FUNCTIONS:
        assert f"$;{function.formula}$".replace("\\", "") in text
    assert "with $M$ of 8 × 8 numbers" in text
    assert "with 8 hidden units" in text
