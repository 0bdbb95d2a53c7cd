"""Each task against its rule, worked out token by token in plain Python."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.tasks import TASKS, Examples


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


@settings(max_examples=25)
@given(length=st.integers(2, 40), seed=st.integers(0, 2**31))
def test_a_run_is_said_again_from_where_it_was_first_said(length: int, seed: int) -> None:
    for ids, decided in zip(*draw("repeat", length, seed, count=4), strict=True):
        assert len(ids) == 2 * length
        period = int(decided.long().argmax())
        assert length / 2 <= period <= length
        assert decided.tolist() == [place >= period for place in range(2 * length)]
        assert (ids[period:] == ids[:-period]).all()


def test_brackets_are_as_often_balanced_as_not_and_every_balanced_row_is_as_likely() -> None:
    found = rows("brackets", draw("brackets", 3, count=4000))
    answers = [answer == ["yes"] for _, answer in found]
    assert sum(answers) / len(answers) == pytest.approx(0.5, abs=0.03)
    good = ["".join(prompt[:-1]) for prompt, answer in found if answer == ["yes"]]
    counts = {row: good.count(row) / len(good) for row in set(good)}
    assert set(counts) == {"((()))", "(()())", "(())()", "()(())", "()()()"}
    assert min(counts.values()) == pytest.approx(0.2, abs=0.04)
    assert len({"".join(prompt[:-1]) for prompt, answer in found if answer == ["no"]}) == 15  # all 20 but those five


def test_pairs_of_modular_addition_that_are_held_out_are_never_trained_on() -> None:
    trained, held_out = (
        {tuple(row) for row in draw("modular-addition", 1, count=30_000, held_out=held_out).tokens[:, :2].tolist()}
        for held_out in (False, True)
    )
    assert not trained & held_out
    assert len(trained) <= int(0.5 * 59**2) == 1740
    assert len(trained) > 1700


@pytest.mark.parametrize("name", TASKS)
def test_the_same_generator_gives_the_same_examples(name: str) -> None:
    one, other, third = (draw(name, 6, seed) for seed in (5, 5, 6))
    assert torch.equal(one.tokens, other.tokens)
    assert not torch.equal(one.tokens, third.tokens)


@pytest.mark.parametrize(("name", "count", "length"), [("repeat", 1, 1), ("copy", 0, 3), ("copy", 1, 0)])
def test_no_example_is_no_question(name: str, count: int, length: int) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected a length from"):
        draw(name, length, count=count)
