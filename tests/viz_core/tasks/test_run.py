"""Tasks against their rules, token by token; training on them from one seed, and what is kept of a run."""

import math
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.maps.contributions import value_lengths
from viz_core.tasks import POSITIONS, TASKS, Examples, Plan, Shape, TaskRun, TaskTransformer
from viz_core.tasks.film import Film, load_film
from viz_core.tasks.run import embedding_spectrum

SMALL = Shape(num_layers=1, num_heads=2, num_hiddens=32)
SHORT = Plan("copy", SMALL, steps=6, every=2, batch_size=4, warm_up=2, longest=4)


def finished(plan: Plan) -> TaskRun:
    run = TaskRun(plan)
    for _ in run.advance():
        pass
    return run


def same(one: TaskRun, other: TaskRun) -> None:
    assert one.curve == other.curve
    for name, weight in one.model.state_dict().items():
        assert torch.equal(weight, other.model.state_dict()[name]), name
    assert [(s.step, s.accuracy) for s in one.snapshots] == [(s.step, s.accuracy) for s in other.snapshots]


def test_one_seed_one_run_whatever_was_drawn_before_and_however_often_it_is_stopped() -> None:
    run = TaskRun(SHORT)
    list(islice(run.advance(), 3))  # whoever asks no further stops it
    assert run.step == 3
    torch.manual_seed(7)
    list(run.advance(1))
    list(run.advance())
    same(run, finished(SHORT))
    assert run.finished
    assert [snapshot.step for snapshot in run.snapshots] == [0, 2, 4, 6]
    assert finished(Plan(**{**vars(SHORT), "seed": 1})).curve != run.curve


def test_the_probe_is_one_example_and_its_maps_are_those_of_the_snapshot() -> None:
    run = finished(Plan("copy", Shape(num_layers=2), steps=4, every=2, batch_size=4, longest=4))
    (example, last), (again, first) = run.probe(), TaskRun(run.plan).probe()
    assert torch.equal(example.tokens, again.tokens)
    assert last.sites == first.sites == ("decoder.0.self", "decoder.1.self")
    for snapshot, trace in ((run.snapshots[-1], last), (run.snapshots[0], first)):
        torch.testing.assert_close(snapshot.maps[1], trace["decoder.1.self"].weights()[0].half())
    assert (run.snapshots[-1].maps - run.snapshots[0].maps).abs().max() > 1e-3


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("positions", POSITIONS)
def test_each_way_to_tell_a_place_enters_a_model_and_only_none_tells_nothing(positions: str, causal: bool) -> None:
    """Without positions and with no mask, reordered tokens get reordered scores; with a mask the last place differs."""
    model = TaskTransformer(27, Shape(positions=positions, causal=causal)).eval()
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    order = torch.tensor([4, 2, 0, 3, 1])
    reordered = torch.allclose(model(tokens)[:, order], model(tokens[:, order]), atol=1e-5)
    assert reordered == (positions == "none" and not causal)
    if causal:  # nothing later is seen
        assert torch.allclose(model(tokens)[:, :2], model(tokens[:, :2]), atol=1e-5)


def test_who_writes_all_at_once_is_not_shown_what_it_shall_find() -> None:
    model = TaskTransformer(27, Shape(causal=False)).eval()
    tokens, decided = TASKS["copy"].draw(torch.Generator().manual_seed(0), 2, 5)
    other = torch.where(decided, (tokens + 1) % 26, tokens)
    scores, right = model.predictions(tokens, decided)
    assert torch.equal(scores, model.predictions(other, decided)[0])
    assert torch.equal(right, tokens[:, :5].flatten())


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_task_is_learned_to_its_bar() -> None:
    """19 of 20 right, by a small model, at one short length; the chapter measures recorded runs of the others."""
    shape = Shape(num_layers=2, num_heads=2, num_hiddens=32, positions="learned")
    sizes = {"shortest": 3, "longest": 3, "steps": 120, "every": 120}
    run = finished(Plan("copy", shape, warm_up=20, learning_rate=1e-2, **sizes))
    assert run.snapshots[0].accuracy < 0.75
    assert run.accuracy() >= 0.95


PLAN = Plan("repeat", Shape(num_heads=2, num_hiddens=32), steps=5, every=2, batch_size=4, longest=5)


@pytest.fixture(scope="module")
def run() -> TaskRun:
    run = TaskRun(PLAN)
    list(run.advance())
    return run


def test_a_film_has_every_shot_and_the_maps_of_its_weights(run: TaskRun) -> None:
    film = Film.of(run)
    assert film.shots == (0, 2, 4, 5)
    assert film.maps.shape == (4, 2, 2, 9, 9)
    assert [len(film.loss), len(film.accuracy), len(film.held_out)] == [5, 5, 4]
    early = TaskRun(PLAN)
    list(early.advance(2))
    for shot, stopped in ((1, early), (-1, run)):
        call = stopped.probe()[1]["decoder.1.self"]
        np.testing.assert_allclose(film.maps[shot, 1], call.weights()[0], atol=1e-3)
        added = value_lengths(call, stopped.model.layers[1].attention.W_o)[0]
        np.testing.assert_allclose(film.lengths[shot, 1], added, rtol=1e-3)
    np.testing.assert_allclose(film.maps.astype(np.float32).sum(axis=-1), 1, atol=5e-3)


def test_a_film_is_the_same_from_its_file(run: TaskRun, tmp_path: Path) -> None:
    film, path = Film.of(run), tmp_path / "film.npz"
    film.save(path)
    again = load_film(path)
    assert (again.plan, again.shots, again.read, again.wanted) == (film.plan, film.shots, film.read, film.wanted)
    for name in ("loss", "accuracy", "held_out", "maps", "lengths", "spectra"):
        np.testing.assert_array_equal(getattr(again, name), getattr(film, name))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 cut off", b"\x80\x04N."])
def test_a_file_that_is_no_film_is_a_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "film.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"film\.npz: expected a recorded run"):
        load_film(path)


def test_as_the_sum_says() -> None:
    E, p = torch.randn(9, 4, generator=torch.Generator().manual_seed(0)), 9
    power = [
        sum(
            abs(sum(float(E[a, d]) * complex(math.cos(x * a), math.sin(x * a)) for a in range(p))) ** 2
            for d in range(4)
        )
        for x in (2 * math.pi * k / p for k in range(1, 5))
    ]
    torch.testing.assert_close(embedding_spectrum(E), torch.tensor(power) / sum(power), atol=1e-6, rtol=0)


def draw(name: str, length: int, seed: int = 0, count: int = 50, held_out: bool = False) -> Examples:
    return TASKS[name].draw(torch.Generator().manual_seed(seed), count, length, held_out)


def rows(name: str, examples: Examples) -> list[tuple[list[str], list[str]]]:
    """Of each row the tokens that are given, and those that the rule decides."""
    words = TASKS[name].tokens
    return [
        ([words[i] for i, known in zip(ids, decided, strict=True) if not known], [words[i] for i in ids[decided]])
        for ids, decided in zip(examples.tokens, examples.decided, strict=True)
    ]


def balanced(brackets: list[str]) -> bool:
    text = "".join(brackets)
    while "()" in text:
        text = text.replace("()", "")
    return not text


def number(digits: list[str]) -> int:
    """Written from the ones up."""
    return int("".join(reversed(digits)))


def look_up(given: list[str]) -> list[str]:
    *pairs, prompt = given
    return [dict(zip(pairs[::2], pairs[1::2], strict=True))[prompt]]


def add(given: list[str]) -> list[str]:
    plus = given.index("+")
    total = number(given[:plus]) + number(given[plus + 1 :])
    return list(reversed(f"{total:0{plus + 1}d}"))


RULES: dict[str, Callable[[list[str]], list[str]]] = {
    "copy": lambda given: given,
    "reverse": lambda given: given[::-1],
    "sort": sorted,
    "look-up": look_up,
    "add": add,
    "brackets": lambda given: ["yes" if balanced(given) else "no"],
    "modular-addition": lambda given: [str((int(given[0]) + int(given[1])) % 59)],
}


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=25)
@given(length=st.integers(1, 26), seed=st.integers(0, 2**31))
def test_the_answer_follows_by_the_rule(name: str, length: int, seed: int) -> None:
    for prompt, answer in rows(name, draw(name, length, seed, count=4)):
        assert prompt[-1] == "="
        assert answer == RULES[name](prompt[:-1])


def test_pairs_of_modular_addition_that_are_held_out_are_never_trained_on() -> None:
    trained, held_out = (
        {tuple(row) for row in draw("modular-addition", 1, count=30_000, held_out=held_out).tokens[:, :2].tolist()}
        for held_out in (False, True)
    )
    assert not trained & held_out
    assert len(trained) <= int(0.5 * 59**2) == 1740
    assert len(trained) > 1700
