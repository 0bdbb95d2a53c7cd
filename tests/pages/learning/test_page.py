"""The learning chapter: recorded runs and one's own, two rounds to play, and what it says, against weights by hand."""

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from jaxtyping import Float
from streamlit.testing.v1 import AppTest
from torch import Tensor

from benchmarks.view_bytes import decode_view
from pages.learning import rounds
from pages.learning import rounds as two_heads
from pages.learning.figures import Jump, largest_jump, read_reaches, reversed_pairs
from pages.learning.runs import RECORDED, OwnRun
from serving.settings import Settings
from tests.pages.reading import components, drawn, figures, one_line, texts
from tests.visits import Visits
from ui.compute.slots import time_limit
from viz_core.lessons.learning import PERIOD, weights_of
from viz_core.tasks import Plan, Shape, TaskRun
from viz_core.tasks.film import load_film
from viz_core.tasks.generating import LETTERS

OpenPage = Callable[..., AppTest]
CHAPTER = "learning"
OWN = {"l-source": "Train one now"}


def maps(app: AppTest, place: int = 0) -> np.ndarray:
    """Every head's exact map in an attention view of the page, as it was sent."""
    view = decode_view(components(app, "attention_view")[place].bytes)
    return np.stack([part for name, part in sorted(view.parts.items()) if name.startswith("map")])


def test_it_opens_on_a_recorded_run_and_every_head_of_its_last_step(visits: Visits) -> None:
    app = visits(CHAPTER)
    film = load_film(RECORDED / "repeat-two-layers-0.npz")
    assert f"after **{film.shots[-1]}** updates: **{film.held_out[-1]:.0%}**" in texts(app)
    weights = film.maps[-1].astype(np.float32)
    np.testing.assert_allclose(maps(app).reshape(weights.shape), weights / weights.sum(-1, keepdims=True), atol=1e-6)
    jump = int(np.abs(np.diff(film.held_out)).argmax())
    marks = {(mark["type"], mark["x0"], mark["x1"]) for mark in figures(app, "curve")[0]["layout"]["shapes"]}
    assert marks == {("line", 400, 400), ("rect", film.shots[jump], film.shots[jump + 1])}


@pytest.fixture
def stopped(open_page: OpenPage) -> AppTest:
    """A run of the reader's own that was stopped half way."""
    plan = Plan("copy", Shape(1, 2, 32), steps=8, every=2, batch_size=4, longest=4)
    run = TaskRun(plan)
    list(run.advance(4))
    app = open_page(CHAPTER, **OWN, **{"l-task": "copy"})
    app.session_state["l-train"] = OwnRun(run.advance(), {}, 8, state="stopped", runs={"your run": run})
    return app.run()


def test_training_begins_with_a_click_and_shows_what_it_has(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **OWN, **{"l-steps": "100", "l-width": "32", "l-differs": "layers"})
    assert "This trains a new model" in texts(app)
    assert not figures(app, "curve")
    app.button(key="l-train-start").click().run()
    assert not app.exception
    run: OwnRun = app.session_state["l-train"]
    assert [r.plan.shape.num_layers for r in run.runs.values()] == [2, 1]
    assert run.done > 0
    assert {"layers: 2", "layers: 1"} <= {trace.get("name") for figure in figures(app) for trace in figure["data"]}
    app.button(key="l-train-stop").click().run()
    assert re.search(r"Stopped after \d+ of 100 updates", texts(app))


def test_a_stopped_run_is_looked_back_at_and_goes_on(stopped: AppTest) -> None:
    assert "Stopped after 4 of 8 updates" in texts(stopped)
    assert stopped.slider(key="l-step").max == 4
    stopped.slider(key="l-step").set_value(2).run()
    assert "after **2** updates" in texts(stopped)
    stopped.button(key="l-train-resume").click().run()
    stopped.run()
    assert stopped.session_state["l-train"].done > 4


@pytest.mark.parametrize(("done", "says"), [(2, "spent"), (8, "finished")])
def test_training_that_ends_early_ran_out_of_its_time(done: int, says: str) -> None:
    run = TaskRun(Plan("copy", Shape(1, 2, 32), steps=8, every=2, batch_size=4, longest=4))
    list(run.advance(done))
    own = OwnRun(iter(()), {}, 8, runs={"your run": run})
    own.step()
    assert own.state == says


def test_strangers_get_small_models_and_a_minute(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    app = open_page(CHAPTER, **OWN, **{"l-layers": "4", "l-width": "256"})
    captions = [caption.value for caption in app.caption if "The address asks for" in caption.value]
    assert ["Layers = 4" in captions[0], "Width = 256" in captions[1]] == [True, True]
    app.button(key="l-train-start").click().run()
    assert app.session_state["l-train"].series.most == time_limit()
    assert Settings.model_fields["max_seconds"].default == 60


def test_the_jump_is_the_largest_change_up_or_down() -> None:
    assert largest_jump((0, 10, 20, 30), np.array([0, 0.25, 1.0, 0.5])) == Jump(10, 20, 0.75)
    assert largest_jump((0, 10, 15), np.array([3.0, 1.0, 2.0])) == Jump(0, 10, -2.0)
    assert largest_jump((0,), np.array([3.0])) is None


def recorded(**accuracy: list[list[float]]) -> dict[str, object]:
    seeds = {name: {str(i): row for i, row in enumerate(rows)} for name, rows in accuracy.items()}
    return {"lengths": [10, 20, 40, 60], "plan": {"longest": 20}, "accuracy": seeds}


SOME = recorded(
    none=[[1, 0.8, 0.1, 0.1], [1, 0.6, 0.3, 0.1]],  # past: 0.1 and 0.2
    rotary=[[1, 1, 0.8, 0.6], [1, 1, 0.4, 0.2]],  # 0.7 and 0.3
    t5=[[1, 1, 0.5, 0.3], [1, 1, 0.9, 0.9]],  # 0.4 and 0.9
    learned=[[1, 1, 0, 0]],
)


def test_only_differences_of_every_seed_are_reported() -> None:
    """Rotary and T5 overlap; both are above none with each seed. Learned stands in no paper's table."""
    assert reversed_pairs(read_reaches(SOME), "kazemnejad") == [("t5", "none"), ("rotary", "none")]
    assert reversed_pairs(read_reaches(SOME), "press") == []


def table(app: AppTest, place: int) -> list[str]:
    """The rows of a table of losses: who, loss, letters right."""
    tables = [text.value for text in app.markdown if "| loss (nats per letter) |" in text.value]
    return tables[place].splitlines()[2:]


def by_hand(seed: int, weights: tuple[Float[Tensor, "n n"] | None, Float[Tensor, "n n"] | None]) -> float:
    """The loss with these weights, None for a head's own, by the formulas of each layer and without interventions."""
    model, ids = two_heads.shipped_model(), [LETTERS.index(letter) for letter in rounds.sequence(seed)]
    X = model.embedding(torch.tensor([ids[:-1]]))
    for layer, given in zip(model.layers, weights, strict=True):
        Z, attention = layer.addnorm1.branch(X), layer.attention
        added = attention(Z, Z, Z, causal=True) if given is None else attention.W_o(given @ attention.W_v(Z))
        X = X + added
    log_p = model.head(model.norm(X))[0].log_softmax(dim=-1)
    return float(-torch.stack([log_p[i, ids[i + 1]] for i in range(PERIOD, rounds.COUNT)]).mean())


def by_name(name: str) -> Float[Tensor, "n n"] | None:
    """The weights of a pattern, written out."""
    weights = torch.zeros(rounds.COUNT, rounds.COUNT)
    for i in range(rounds.COUNT):
        if name == "uniform":
            weights[i, : i + 1] = 1 / (i + 1)
        elif name == "after-occurrence" and i >= PERIOD:
            weights[i, i - PERIOD + 1] = 1
        elif name in ("previous", "diagonal", "first"):
            weights[i, {"previous": max(0, i - 1), "diagonal": i, "first": 0}[name]] = 1
    return None if name == rounds.TRAINED else weights


def test_the_token_after_the_previous_occurrence() -> None:
    assert rounds.keys_after("abcab") == (-1, -1, -1, 1, 2)
    assert rounds.keys_after("aab") == (-1, 1, -1)
    assert weights_of((0, -1, 1)).tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("first", [rounds.OFF, rounds.TRAINED, *rounds.NAMED])
@pytest.mark.parametrize("second", [rounds.OFF, rounds.TRAINED, *rounds.NAMED])
def test_the_loss_of_every_two_patterns_is_that_of_the_formula(first: str, second: str) -> None:
    with torch.no_grad():
        expected = by_hand(3, (by_name(first), by_name(second)))
    made = rounds.outcome(3, first, second)
    assert made.loss == pytest.approx(expected, abs=1e-4)
    for given, shown in zip((by_name(first), by_name(second)), made.maps, strict=True):
        assert given is None or torch.allclose(given, shown, atol=1e-6)


def test_the_score_is_the_share_of_the_gap() -> None:
    assert rounds.score(1.5, 1.0, 3.0) == 0.75
    assert rounds.score(3.0, 1.0, 3.0) == 0
    assert rounds.score(5.0, 1.0, 3.0) == -1
    assert rounds.score(1.0, 2.0, 2.0) is None


def test_moves_are_read_undone_and_bounded() -> None:
    moves = rounds.read_moves("617282a5")
    assert moves == ((6, 1), (7, 2), (8, 2), (10, 5))
    assert rounds.write_moves(moves) == "617282a5"
    assert rounds.read_moves("66") == ((6, 6),), "a query may attend to itself"
    assert rounds.keys_of(rounds.add_move(moves, 8, 3))[6:] == (1, 2, 3, -1, 5)
    assert rounds.add_move(moves, 8, 2) == moves, "it changes nothing"
    assert rounds.keys_of(rounds.add_move(moves, 8, 3)[:-1]) == rounds.keys_of(moves)
    many = moves
    for key in (4, 3) * 100:
        many = rounds.add_move(many, 8, key)
    assert rounds.read_moves(rounds.write_moves(many)) == many
    assert rounds.keys_of(many)[6:] == (1, 2, 3, -1, 5)


@pytest.mark.parametrize("text", ["6", "12", "b0", "zz", "6 1", "<b>", "０１", "61" * 61])
def test_moves_and_clicks_that_are_none(text: str) -> None:
    assert rounds.read_moves(text) is None
    for x, y in (("1", 2), (3, 2), (-1, 2), (1, 11), (float("nan"), 2)):
        assert rounds.read_cell({"x": x, "y": y}) is rounds.read_cell({}) is None
    assert rounds.read_cell({"x": 1, "y": 6}) == (6, 1)


def test_a_reader_plays_the_head_key_by_key_and_undoes(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    keys = [-1] * rounds.COUNT
    assert "No key chosen yet" in one_line(app)
    for query in range(PERIOD, rounds.COUNT):
        keys[query] = query - PERIOD + 1
        app.button_group(key="l-play-2-key").set_value(keys[query]).run()
        made = rounds.outcome(0, rounds.TRAINED, tuple(keys))
        assert table(app, 0)[0] == f"| yours | {made.loss:.2f} | {made.right} of 5 |"
    trained, without = rounds.outcome(0, rounds.TRAINED, rounds.TRAINED), rounds.outcome(0, rounds.TRAINED, rounds.OFF)
    assert table(app, 0)[1:] == [
        f"| trained | {trained.loss:.2f} | {trained.right} of 5 |",
        f"| switched off | {without.loss:.2f} | {without.right} of 5 |",
    ]
    share = rounds.score(made.loss, trained.loss, without.loss)
    assert f"You are **{share:.0%}** of the way" in one_line(app)
    assert app.query_params["l-play-2"] == "61728394a5"
    shown = np.nan_to_num(drawn(app, "pattern")[0]["z"])
    np.testing.assert_array_equal(shown, weights_of(keys).numpy())
    app.button(key="l-play-2-undo").click().run()
    assert app.query_params["l-play-2"] == "61728394"
    app.button(key="l-play-2-clear").click().run()
    assert "l-play-2" not in app.query_params
    assert table(app, 0)[0].replace("yours", "switched off") == table(app, 0)[2]
