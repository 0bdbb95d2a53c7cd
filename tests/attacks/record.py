"""A pytest plugin: docs/attacks.md is written by the run itself, one row for each try.

`make attacks` runs every test that is marked `attack(target)` with `-p tests.attacks.record` and
`--attacks-to=docs/attacks.md`. What a try got is what its test told by `record_property("got", ...)`; one that passes
without it was "held".
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

START, END = "<!-- attacks: written by `make attacks` -->", "<!-- end of attacks -->"
_HELD = "held"
_LONG, _SHORT = 80, 20  # characters of what a test is given


@dataclass(frozen=True)
class Try:
    """One row: what is attacked, how, what it got, and for a file what judging it took."""

    target: str
    how: str
    got: str
    took: str = ""


class Record:
    """Collects tries as tests end, in whichever process they ran."""

    def __init__(self, document: Path) -> None:
        self._document = document
        self._tries: list[Try] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        if "attack" not in properties:
            return
        if report.when == "call" or report.failed:
            got = "FAILED: it got through, or the test is wrong" if report.failed else str(properties.get("got", _HELD))
            self._tries.append(Try(str(properties["attack"]), how(report.nodeid), got, str(properties.get("took", ""))))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not hasattr(session.config, "workerinput") and self._tries:
            text = self._document.read_text(encoding="utf-8")
            before, after = text.split(START)[0], text.split(END)[1]
            written = f"{before}{START}\n{table(self._tries)}\n{END}{after}"
            self._document.write_text(written, encoding="utf-8")


def how(nodeid: str) -> str:
    """A test's name as words: its file's test, and what it was given.

    >>> how("tests/a.py::test_half_a_request_ends[nothing at all]")
    'half a request ends: nothing at all'
    """
    name, _, given = nodeid.rpartition("::")[2].partition("[")
    if "[" in nodeid and "::" in nodeid.partition("[")[2]:  # a parameter may hold anything
        name, _, given = nodeid.partition("::")[2].partition("[")
    words = name.removeprefix("test_").replace("_", " ")
    return f"{words}: {given[:-1]}" if given else words


def table(tries: list[Try]) -> str:
    """How many there were of each kind, then every one."""
    counts = Counter(one.target for one in tries)
    head = f"{len(tries):,} tries: " + ", ".join(f"{count} on {target}" for target, count in sorted(counts.items()))
    rows = sorted({f"| {one.target} | {_cell(one.how)} | {_cell(one.got)} | {one.took} |" for one in tries})
    return "\n".join([f"{head}.", "", "| target | try | what it got | took |", "| --- | --- | --- | --- |", *rows])


def _cell(text: str) -> str:
    """As it is, on one line, with nothing that a table or a page would take for its own."""
    short = re.sub(r"\s+", " ", text)
    short = short if len(short) <= 160 else f"{short[:160]}…"
    return re.sub(r"([|<>*_`\[\]\\])", r"\\\1", short)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--attacks-to", type=Path, help="the document that gets a row for every try")


def pytest_make_parametrize_id(val: object) -> str | None:
    """What a test is given, where pytest would only number it: `asked0` says nothing in a table.

    >>> pytest_make_parametrize_id({"a-n": "1e99"})
    'a-n=1e99'
    """
    if isinstance(val, str | bytes):
        return f"{val[:_SHORT]!a} and so on, {len(val):,}" if len(val) > _LONG else None
    if isinstance(val, list | tuple | dict):
        given = [f"{name}={one}" for name, one in val.items()] if isinstance(val, dict) else map(str, val)
        words = ", ".join(given)
        return (
            None
            if re.search(" at 0x|object", words)
            else f"{words[:_LONG] or 'nothing'}".encode("unicode_escape").decode()
        )
    return None


def pytest_configure(config: pytest.Config) -> None:
    if (document := config.getoption("--attacks-to")) is not None:
        config.pluginmanager.register(Record(document))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Write down what a test attacks, for whichever process makes the document."""
    if mark := item.get_closest_marker("attack"):
        item.user_properties.append(("attack", mark.args[0]))
