"""Queries on the heads of a model: how much of a scan this machine takes, and lines of own texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from serving.requests.lab import ScanPlan, lines_of, plan_scan
from viz_core.hub import HubError, HubModel


@pytest.mark.parametrize(("hosted", "parameters", "worth"), [("0", 10**8, 12), ("1", 10**8, 7), ("1", 10**9, 0)])
def test_heads_are_switched_off_on_as_many_texts_as_this_machine_takes(
    tiny_model: Callable[[str], HubModel], monkeypatch: pytest.MonkeyPatch, hosted: str, parameters: int, worth: int
) -> None:
    monkeypatch.setenv("ATLAS_HOSTED", hosted)
    model = tiny_model("sorter")
    assert plan_scan(replace(model, card=replace(model.card, num_parameters=parameters))) == ScanPlan("labels", worth)


def test_lines_of_own_texts_are_clean_and_limited() -> None:
    assert lines_of(" The cat\x00 sat. \r\n\n\t\nNo.\x07", 30) == ("The cat sat.", "No.")
    assert lines_of("", 30) == ()
    with pytest.raises(HubError, match="This text has 31 characters; at most 30 are allowed here"):
        lines_of("a" * 31, 30)
