"""Every part of the benchmarks can be run, and a target is counted as the report says."""

from __future__ import annotations

import importlib
import inspect

import pytest

from benchmarks import __main__ as command
from benchmarks import report
from benchmarks.report import Row


@pytest.mark.parametrize("name", command.PARTS)
def test_every_part_can_be_measured_and_tried_out(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert set(module.QUICK) <= set(inspect.signature(module.measure).parameters)


def test_a_target_counts_in_units_or_in_the_peers_and_what_has_no_number_missed_it() -> None:
    some, none = (2.0,), ()
    rows = {
        "| look | 2 s (1 to 4) |  |  |  |  |": Row("look", "s", (1.0, 2.0, 4.0)),
        "| look | 2 s |  |  | <= 1 s | NO |": Row("look", "s", (2.0,), target=1),
        "| look | 2 s | it: 1,234 s | 617 | <= 1.5 x it | yes |": Row("look", "s", some, "it", (1234.0,), 1.5, True),
        "| look | too long | it: 2 s |  | <= 1 x it | NO |": Row("look", "s", none, "it", some, 1, True, "too long"),
        "| look | 2 s | it: 16 GB |  | <= 1 x it | NO |": Row("look", "s", some, "it", none, 1, True, "16 GB"),
    }
    assert report.table(list(rows.values())).splitlines()[2:] == list(rows)
