"""Circuits of a few heads: alone against plain hooks, their paths against single ones."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.circuits.test_sweep import made, metric
from viz_core.circuits import circuit_edges, circuits_alone, path_patch, sweep

EVERY = [(f"decoder.{layer}.self", head) for layer, head in product(range(3), range(4))]
SOME = [("decoder.0.self", 1), ("decoder.1.self", 3), ("decoder.2.self", 0)]


@torch.no_grad()
def by_hooks(plain: Any, clean: dict[str, Tensor], corrupted: dict[str, Tensor], circuit: list[Any]) -> Tensor:
    written: dict[int, Tensor] = {}
    layers = [block.attn.c_proj for block in plain.transformer.h]
    handles = [
        layer.register_forward_pre_hook(lambda _m, given, i=i: written.update({i: given[0]}))
        for i, layer in enumerate(layers)
    ]
    plain(**corrupted)
    for handle in handles:
        handle.remove()

    def outside(i: int, given: Tensor) -> Tensor:
        given = given.clone()
        for head in range(4):
            if (f"decoder.{i}.self", head) not in circuit:
                given[..., 4 * head : 4 * head + 4] = written[i][..., 4 * head : 4 * head + 4]
        return given

    handles = [
        layer.register_forward_pre_hook(lambda _m, given, i=i: (outside(i, given[0]),))
        for i, layer in enumerate(layers)
    ]
    found = metric(plain(**clean).logits)
    for handle in handles:
        handle.remove()
    return found


def test_a_circuit_alone_is_that_of_plain_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz_core.circuits.path.CELLS", 2)
    model, plain, clean, corrupted = made()
    circuits: list[Any] = [SOME, [], EVERY, EVERY[5:]]
    found = circuits_alone(model, clean, corrupted, metric, circuits)
    expected = torch.stack([by_hooks(plain, clean, corrupted, circuit) for circuit in circuits])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(found[2], metric(plain(**clean).logits), atol=1e-5, rtol=1e-4)
    assert found.std() > 0.01
    assert sweep.CELLS == 16


def test_edges_are_all_paths_between_the_heads_and_to_the_logits() -> None:
    model, _, clean, corrupted = made()
    edges = circuit_edges(model, clean, corrupted, metric, SOME)
    ends = [(edge.sender, edge.receiver, edge.to) for edge in edges]
    pairs = [(SOME[0], SOME[1]), (SOME[0], SOME[2]), (SOME[1], SOME[2])]
    expected = [(*pair, to) for pair in pairs for to in ("queries", "keys", "values")]
    assert sorted(ends, key=str) == sorted([*expected, *((head, None, "logits") for head in SOME)], key=str)
    for edge in edges[2], edges[-1]:
        to = "queries" if edge.receiver is None else edge.to
        alone = path_patch(model, clean, corrupted, metric, edge.sender, edge.receiver, to, through_mlp=True)
        assert edge.value == pytest.approx(float(alone), abs=1e-6)
