"""What a load test reports of answers that came, failed or were somebody else's."""

from __future__ import annotations

from benchmarks.load import Answer, Spent, load_rows
from benchmarks.report import Row


def rows(answers: list[Answer], mistakes: int) -> dict[str, Row]:
    return {row.what.split(": ")[1]: row for row in load_rows(2, answers, mistakes, Spent(10.0, 15.0, (100.0, 150.0)))}


def test_errors_and_wrong_answers_miss_the_target() -> None:
    good, bad = Answer("a", 1.0, 0, b"", None), Answer("b", 2.0, 3, None, "OSError: gone")
    found = rows([good, bad], mistakes=1)
    assert found["errors"].ours == (1,)
    assert found["errors"].met is False
    assert found["wrong answers"].met is False
    assert found["told to try again"].ours == (3,)
    assert rows([good, good], mistakes=0)["errors"].met is True


def test_the_95th_of_a_hundred_answers() -> None:
    found = rows([Answer(str(n), float(n), 0, b"", None) for n in range(100, 0, -1)], mistakes=0)
    assert found["95% of sentences to maps"].ours == (95.0,)
    assert found["sentence to maps"].median == 50.5
    assert found["memory of the server"].ratio == 100 / 150


def test_what_an_answer_costs() -> None:
    found = rows([Answer(str(n), 1.0, 0, b"", None) for n in range(100)], mistakes=0)
    assert found["one answer every"].ours == (0.1,)  # a hundred in ten seconds
    assert found["one answer every"].met is True
    assert found["processor's time for one"].ours == (0.15,)
    assert found["cores kept busy by the server"].ours == (1.5,)
    theirs = load_rows(2, [Answer("a", 1.0, 0, b"", None)], 0, Spent(1.0, None, None))
    assert not [row for row in theirs if row.unit in ("MB", "cores")]
