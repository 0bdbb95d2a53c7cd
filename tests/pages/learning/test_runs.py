"""Recorded runs, and the two rounds: what the chapter says of them, against weights and hooks done by hand."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import Float
from streamlit.testing.v1 import AppTest
from torch import Tensor

from pages.learning import rounds as two_heads
from pages.learning import runs as measured_run
from pages.learning.figures import Jump, largest_jump, read_reaches, reversed_pairs, strongest_head
from pages.learning.parts import LEAST_INDUCTION
from pages.learning.rounds import (
    COUNT,
    NAMED,
    OFF,
    TRAINED,
    add_move,
    keys_after,
    keys_of,
    outcome,
    read_cell,
    read_moves,
    score,
    sequence,
    write_moves,
)
from pages.learning.runs import RECORDED
from recipes.task_recordings import SEEDS
from tests.pages.reading import drawn, one_line
from tests.visits import Visits
from viz_core.lessons.learning import PERIOD, head_measures, weights_of
from viz_core.maps.measures import equal_tokens, offset_mass, target_mass
from viz_core.runtime.assets import AssetError
from viz_core.tasks.film import Film, load_film
from viz_core.tasks.generating import LETTERS
from viz_core.trace import attention_weights

CHAPTER = "learning"
TWO_LAYERS = "repeat-two-layers"


def test_the_jump_is_the_largest_change_up_or_down() -> None:
    assert largest_jump((0, 10, 20, 30), np.array([0, 0.25, 1.0, 0.5])) == Jump(10, 20, 0.75)
    assert largest_jump((0, 10, 15), np.array([3.0, 1.0, 2.0])) == Jump(0, 10, -2.0)
    assert largest_jump((0,), np.array([3.0])) is None


def test_the_strongest_head_is_that_of_the_last_shot() -> None:
    measured = np.array([[[0.9, 0.1], [0.2, 0.3]], [[0.1, 0.2], [0.8, 0.4]]])
    assert strongest_head(measured) == (1, 0)


def recorded(**accuracy: list[list[float]]) -> dict[str, object]:
    seeds = {name: {str(i): row for i, row in enumerate(rows)} for name, rows in accuracy.items()}
    return {"lengths": [10, 20, 40, 60], "plan": {"longest": 20}, "accuracy": seeds}


SOME = recorded(
    none=[[1, 0.8, 0.1, 0.1], [1, 0.6, 0.3, 0.1]],  # past: 0.1 and 0.2
    rotary=[[1, 1, 0.8, 0.6], [1, 1, 0.4, 0.2]],  # 0.7 and 0.3
    t5=[[1, 1, 0.5, 0.3], [1, 1, 0.9, 0.9]],  # 0.4 and 0.9
    learned=[[1, 1, 0, 0]],
)


def test_the_best_past_its_length_comes_first() -> None:
    reaches = read_reaches(SOME | {"accuracy": {**SOME["accuracy"], "alibi": {}}})  # type: ignore[dict-item]
    assert list(reaches) == ["t5", "rotary", "none", "learned"]
    np.testing.assert_allclose(reaches["none"].past, [0.1, 0.2])
    np.testing.assert_allclose(reaches["none"].within, [0.9, 0.8])
    np.testing.assert_allclose(reaches["none"].mean, [1, 0.7, 0.2, 0.1])
    np.testing.assert_allclose([reaches["none"].low, reaches["none"].high], [[1, 0.6, 0.1, 0.1], [1, 0.8, 0.3, 0.1]])


def test_only_what_every_seed_turns_round_is_said_to_differ() -> None:
    """Rotary and T5 overlap; both are above none with each seed. Learned stands in no paper's table."""
    assert reversed_pairs(read_reaches(SOME), "kazemnejad") == [("t5", "none"), ("rotary", "none")]
    assert reversed_pairs(read_reaches(SOME), "press") == []


@cache
def film(name: str, seed: int) -> Film:
    return load_film(RECORDED / f"{name}-{seed}.npz")


def past_and_within() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of each scheme the three seeds' means past length 20, and up to it."""
    recorded = json.loads((RECORDED / "extrapolation.json").read_text(encoding="utf-8"))
    longer = np.array(recorded["lengths"]) > 20
    rows = {name: np.array(list(seeds.values())) for name, seeds in recorded["accuracy"].items()}
    assert {row.shape for row in rows.values()} == {(3, len(longer))}
    return {name: (row[:, longer].mean(axis=1), row[:, ~longer].mean(axis=1)) for name, row in rows.items()}


def test_of_the_scheme_in_the_exercise() -> None:
    ratios = {name: past.mean() / within.mean() for name, (past, within) in past_and_within().items()}
    assert {name for name in ("relative", "alibi", "rotary", "learned") if ratios[name] < 2 / 3} == {
        "rotary",
        "learned",
    }


def max_induction(name: str, seed: int) -> np.ndarray:
    """The most that any head has at each shot."""
    return head_measures(film(name, seed))["induction"].max(axis=(1, 2))


def test_of_what_one_layer_cannot_do() -> None:
    """Keys made of their own letter or place give two of the looks; the third, one layer never learned."""
    letters = film("repeat-one-layer", 0).read
    known = {letter: place for place, letter in enumerate(dict.fromkeys(letters))}
    spelt = torch.eye(len(known))[[known[letter] for letter in letters]][None, None]
    places = torch.eye(len(letters))[None, None]
    same = attention_weights(20 * spelt, spelt, scale=1.0)[0, 0]
    before = attention_weights(20 * places.roll(1, dims=-2), places, scale=1.0)[0, 0]  # asks for the place before
    assert float(target_mass(same, equal_tokens(letters, letters))) > 0.99
    assert float(offset_mass(before, -1)) > 0.99
    assert max(max_induction("repeat-one-layer", seed).max() for seed in SEEDS) < LEAST_INDUCTION
    assert min(max_induction(TWO_LAYERS, seed)[-1] for seed in SEEDS) > LEAST_INDUCTION, "two layers can"


OpenPage = Callable[..., AppTest]


def table(app: AppTest, place: int) -> list[str]:
    """The rows of a table of losses: who, loss, letters right."""
    tables = [text.value for text in app.markdown if "| loss (nats per letter) |" in text.value]
    return tables[place].splitlines()[2:]


def by_hand(seed: int, weights: tuple[Float[Tensor, "n n"] | None, Float[Tensor, "n n"] | None]) -> float:
    """The loss with these weights, None for a head's own, by the formulas of each layer and without interventions."""
    model, ids = two_heads.shipped_model(), [LETTERS.index(letter) for letter in sequence(seed)]
    X = model.embedding(torch.tensor([ids[:-1]]))
    for layer, given in zip(model.layers, weights, strict=True):
        Z, attention = layer.addnorm1.branch(X), layer.attention
        added = attention(Z, Z, Z, causal=True) if given is None else attention.W_o(given @ attention.W_v(Z))
        X = X + added
    log_p = model.head(model.norm(X))[0].log_softmax(dim=-1)
    return float(-torch.stack([log_p[i, ids[i + 1]] for i in range(PERIOD, COUNT)]).mean())


def by_name(name: str) -> Float[Tensor, "n n"] | None:
    """The weights of a pattern, written out."""
    weights = torch.zeros(COUNT, COUNT)
    for i in range(COUNT):
        if name == "uniform":
            weights[i, : i + 1] = 1 / (i + 1)
        elif name == "after-occurrence" and i >= PERIOD:
            weights[i, i - PERIOD + 1] = 1
        elif name in ("previous", "diagonal", "first"):
            weights[i, {"previous": max(0, i - 1), "diagonal": i, "first": 0}[name]] = 1
    return None if name == TRAINED else weights


@pytest.mark.parametrize("seed", range(3))
def test_a_sequence_is_six_different_letters_twice(seed: int) -> None:
    letters = sequence(seed)
    assert letters[:PERIOD] == letters[PERIOD:]
    assert len(set(letters)) == PERIOD


def test_the_token_after_the_previous_occurrence() -> None:
    assert keys_after("abcab") == (-1, -1, -1, 1, 2)
    assert keys_after("aab") == (-1, 1, -1)
    assert weights_of((0, -1, 1)).tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("first", [OFF, TRAINED, *NAMED])
@pytest.mark.parametrize("second", [OFF, TRAINED, *NAMED])
def test_the_loss_of_every_two_patterns_is_that_of_the_formula(first: str, second: str) -> None:
    with torch.no_grad():
        expected = by_hand(3, (by_name(first), by_name(second)))
    made = outcome(3, first, second)
    assert made.loss == pytest.approx(expected, abs=1e-4)
    for given, shown in zip((by_name(first), by_name(second)), made.maps, strict=True):
        assert given is None or torch.allclose(given, shown, atol=1e-6)


def test_chosen_keys_are_the_pattern_and_no_key_adds_nothing() -> None:
    keys = (-1,) * PERIOD + (1, 2, -1, 4, 5)
    with torch.no_grad():
        expected = by_hand(5, (None, weights_of(keys)))
    assert outcome(5, TRAINED, keys).loss == pytest.approx(expected, abs=1e-4)
    assert outcome(5, TRAINED, (-1,) * COUNT).loss == outcome(5, TRAINED, OFF).loss


@pytest.mark.parametrize("seed", range(3))
def test_two_heads_are_needed_unless_the_pattern_contains_the_search(seed: int) -> None:
    """As the section says."""
    trained, without = outcome(seed, TRAINED, TRAINED).loss, outcome(seed, OFF, OFF).loss
    others = [outcome(seed, name, TRAINED) for name in (OFF, "diagonal", "first", "after-occurrence")]
    circuit = outcome(seed, "previous", TRAINED)
    assert circuit.right == PERIOD - 1
    assert circuit.loss < 0.4 < 2 < min(each.loss for each in others)
    assert trained < 0.2 < 2.8 < without
    assert outcome(seed, OFF, "after-occurrence").loss < 0.1


def test_the_score_is_the_share_of_the_gap() -> None:
    assert score(1.5, 1.0, 3.0) == 0.75
    assert score(3.0, 1.0, 3.0) == 0
    assert score(5.0, 1.0, 3.0) == -1
    assert score(1.0, 2.0, 2.0) is None


def test_moves_are_read_undone_and_bounded() -> None:
    moves = read_moves("617282a5")
    assert moves == ((6, 1), (7, 2), (8, 2), (10, 5))
    assert write_moves(moves) == "617282a5"
    assert read_moves("66") == ((6, 6),), "a query may attend to itself"
    assert keys_of(add_move(moves, 8, 3))[6:] == (1, 2, 3, -1, 5)
    assert add_move(moves, 8, 2) == moves, "it changes nothing"
    assert keys_of(add_move(moves, 8, 3)[:-1]) == keys_of(moves)
    many = moves
    for key in (4, 3) * 100:
        many = add_move(many, 8, key)
    assert read_moves(write_moves(many)) == many
    assert keys_of(many)[6:] == (1, 2, 3, -1, 5)


@pytest.mark.parametrize("text", ["6", "12", "b0", "zz", "6 1", "<b>", "０１", "61" * 61])
def test_moves_that_are_none(text: str) -> None:
    assert read_moves(text) is None


@pytest.mark.parametrize(
    "point",
    [{}, {"x": "1", "y": 2}, {"x": 3, "y": 2}, {"x": -1, "y": 2}, {"x": 1, "y": 11}, {"x": float("nan"), "y": 2}],
)
def test_a_click_that_is_no_cell(point: dict[str, object]) -> None:
    assert read_cell(point) is None
    assert read_cell({"x": 1, "y": 6}) == (6, 1)


def test_a_reader_plays_the_head_key_by_key_and_undoes(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    keys = [-1] * COUNT
    assert "No key chosen yet" in one_line(app)
    for query in range(PERIOD, COUNT):
        keys[query] = query - PERIOD + 1
        app.button_group(key="l-play-2-key").set_value(keys[query]).run()
        made = outcome(0, TRAINED, tuple(keys))
        assert table(app, 0)[0] == f"| yours | {made.loss:.2f} | {made.right} of 5 |"
    trained, without = outcome(0, TRAINED, TRAINED), outcome(0, TRAINED, OFF)
    assert table(app, 0)[1:] == [
        f"| trained | {trained.loss:.2f} | {trained.right} of 5 |",
        f"| switched off | {without.loss:.2f} | {without.right} of 5 |",
    ]
    share = score(made.loss, trained.loss, without.loss)
    assert f"You are **{share:.0%}** of the way" in one_line(app)
    assert app.query_params["l-play-2"] == "61728394a5"
    shown = np.nan_to_num(drawn(app, "pattern")[0]["z"])
    np.testing.assert_array_equal(shown, weights_of(keys).numpy())
    app.button(key="l-play-2-undo").click().run()
    assert app.query_params["l-play-2"] == "61728394"
    app.button(key="l-play-2-clear").click().run()
    assert "l-play-2" not in app.query_params
    assert table(app, 0)[0].replace("yours", "switched off") == table(app, 0)[2]


def test_a_reader_builds_a_circuit(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"l-circuit-seed": "4"})
    assert table(app, 1)[0].replace("yours", "switched off") == table(app, 1)[2]
    app.selectbox(key="l-first-pattern").set_value("previous").run()
    app.selectbox(key="l-second-pattern").set_value(TRAINED).run()
    made = outcome(4, "previous", TRAINED)
    assert table(app, 1)[0] == f"| yours | {made.loss:.2f} | {made.right} of 5 |"
    app.selectbox(key="l-first-pattern").set_value("clicked").run()
    app.button_group(key="l-circuit-1-query").set_value(1).run()
    for query in range(1, COUNT):
        app.button_group(key="l-circuit-1-key").set_value(query - 1).run()
    same = outcome(4, (-1, *range(COUNT - 1)), TRAINED)
    assert table(app, 1)[0] == f"| yours | {same.loss:.2f} | {same.right} of 5 |"


def test_a_link_holds_a_round(visits: Visits) -> None:
    app = visits(CHAPTER, **{"l-player": "1", "l-play-1": "10213243", "l-play-seed": "7"})
    made = outcome(7, (-1, 0, 1, 2, 3, *(-1,) * 6), TRAINED)
    assert table(app, 0)[0] == f"| yours | {made.loss:.2f} | {made.right} of 5 |"


def test_weights_that_are_lost_are_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    two_heads.shipped_model.clear()
    monkeypatch.setattr(measured_run, "RECORDED", tmp_path)
    with pytest.raises(AssetError, match=r"two-heads\.safetensors of the Atlas is missing or damaged"):
        two_heads.shipped_model()
