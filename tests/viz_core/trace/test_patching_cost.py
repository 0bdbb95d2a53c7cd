"""What a patch computes: the weights of the heads that are patched, and no others."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from viz_core.trace import attend, intervene, patch, record
from viz_core.trace.source import Projected


@pytest.mark.parametrize("what", ["weights", "output"])
def test_a_patch_computes_the_heads_that_are_patched_and_no_others(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = torch.randn(2, 1, 4, 5, 8)
    with record(values=True) as trace:
        attend(x, x, x, site="here")
    computed: list[int] = []
    rows = Projected.rows

    def counted(self: Projected, heads: slice, queries: slice) -> Tensor:
        computed.extend(range(heads.start, heads.stop))
        return rows(self, heads, queries)

    monkeypatch.setattr(Projected, "rows", counted)
    edit = patch([1, 3], trace["here"], what)
    assert computed == [1, 3]
    for _ in range(3):
        with intervene({"here": edit}):
            attend(y, y, y, site="here")
    again = computed[2:]
    assert set(again) == {1, 3}, "the kernel gives the others"
    assert len(again) == 6
