"""Data takes no more calls from a control to its picture than today."""

import pytest

from tests.hops import WAYS, walk

HOPS = {"slider": 9, "sentence": 24}
"""Today's length of each way. It may only shrink; the budget of the design is in `WAYS`."""


@pytest.mark.parametrize("name", WAYS)
def test_the_way_from_a_control_to_its_picture_does_not_grow(name: str) -> None:
    way = WAYS[name]
    walked = walk(way)
    assert set(walked.stacks) == {function.__name__ for function in (way.control, *way.stations)}
    assert walked.hops == HOPS[name] <= way.budget, walked.stacks
    assert walked.calls.total() > walked.hops
