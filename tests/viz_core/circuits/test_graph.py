"""Circuits of a few heads: alone against plain hooks, their paths against single ones."""

from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.circuits.hooked import HEADS, WIDTH, first, hooks, layers, made, metric, seen, with_columns
from viz_core.circuits import circuit_edges, circuits_alone, path_patch, sweep

EVERY = [(f"decoder.{layer}.self", head) for layer, head in product(range(2), range(HEADS))]
SOME = [("decoder.0.self", 1), ("decoder.0.self", 3), ("decoder.1.self", 0)]


@torch.no_grad()
def by_hooks(plain: Any, clean: dict[str, Tensor], corrupted: dict[str, Tensor], circuit: list[Any]) -> Tensor:
    places = [(layer.out, "in") for layer in layers(plain)]
    written = seen(plain, corrupted, places)

    def outside(i: int, x: Tensor) -> Tensor:
        for head in range(HEADS):
            if (f"decoder.{i}.self", head) not in circuit:
                x = with_columns(x, slice(head * WIDTH, head * WIDTH + WIDTH), written[places[i]])
        return x

    with hooks({place: partial(outside, i) for i, place in enumerate(places)}):
        return metric(first(plain(**clean)))


def test_a_circuit_alone_is_that_of_plain_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz_core.circuits.path.CELLS", 2)
    model, plain, clean, corrupted, _ = made("gpt2")
    circuits: list[Any] = [SOME, [], EVERY, EVERY[5:]]
    found = circuits_alone(model, clean, corrupted, metric, circuits)
    expected = torch.stack([by_hooks(plain, clean, corrupted, circuit) for circuit in circuits])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(found[2], metric(plain(**clean).logits), atol=1e-5, rtol=1e-4)
    assert found.std() > 0.01
    assert sweep.CELLS == 16


def test_edges_are_all_paths_between_the_heads_and_to_the_logits() -> None:
    model, _, clean, corrupted, _ = made("gpt2")
    edges = circuit_edges(model, clean, corrupted, metric, SOME)
    ends = [(edge.sender, edge.receiver, edge.to) for edge in edges]
    pairs = [(SOME[0], SOME[2]), (SOME[1], SOME[2])]
    expected = [(*pair, to) for pair in pairs for to in ("queries", "keys", "values")]
    assert sorted(ends, key=str) == sorted([*expected, *((head, None, "logits") for head in SOME)], key=str)
    for edge in edges[2], edges[-1]:
        to = "queries" if edge.receiver is None else edge.to
        alone = path_patch(model, clean, corrupted, metric, edge.sender, edge.receiver, to, through_mlp=True)
        assert edge.value == pytest.approx(float(alone), abs=1e-6)
