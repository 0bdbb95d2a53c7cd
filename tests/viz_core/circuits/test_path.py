"""Paths between two heads, and circuits of a few, against plain hooks."""

import copy
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.circuits.hooked import HEADS, WIDTH, first, hooks, layers, made, metric, seen, with_columns
from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.circuits import circuit_edges, circuits_alone, path_patch, sweep
from viz_core.hub import instrument
from viz_core.trace import intervene, off

FAMILIES = ["ours", "gpt2", "llama", "bert-fills"]


@torch.no_grad()
def by_hooks(
    plain: Any, clean: Any, corrupted: Any, sender: int, receiver: int | None, to: str, through_mlp: bool = False
) -> Tensor:
    """From a head of the first layer to one of the second, or to the logits."""
    here, there = layers(plain)
    columns = slice(sender * WIDTH, sender * WIDTH + WIDTH)
    written = seen(plain, clean, [(here.out, "in")])[here.out, "in"]
    places = [(here.mlp, "out"), (there.attention, "out"), (there.mlp, "out"), (there.out, "in")]
    before = seen(plain, corrupted, places)
    frozen = {place: lambda _x, place=place: before[place] for place in places[1 if through_mlp else 0 : 2]}
    if not through_mlp:
        frozen[places[2]] = lambda _x: before[places[2]]
    projection = getattr(there, to)
    found: dict[str, Tensor] = {}
    with hooks(
        {
            (here.out, "in"): lambda x: with_columns(x, columns, written),
            (projection, "out"): lambda x: found.update(x=x),
        }
        | frozen
    ):
        logits = first(plain(**corrupted))
    if receiver is None:
        return metric(logits).float()
    own = there.columns(to, receiver)
    of_head = slice(receiver * WIDTH, receiver * WIDTH + WIDTH)
    with hooks(
        {
            (projection, "out"): lambda x: with_columns(x, own, found["x"]),
            (there.out, "in"): lambda x: with_columns(before[there.out, "in"], of_head, x),
        }
    ):
        return metric(first(plain(**corrupted))).float()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("receiver", "to"), [(2, "queries"), (3, "keys"), (2, "values"), (None, "queries")])
@pytest.mark.parametrize("through_mlp", [False, True])
def test_a_path_is_that_of_plain_hooks(family: str, receiver: int | None, to: str, through_mlp: bool) -> None:
    """In a padded batch."""
    model, plain, clean, corrupted, stack = made(family)
    end = None if receiver is None else (f"{stack}.1.self", receiver)
    found = path_patch(model, clean, corrupted, metric, (f"{stack}.0.self", 1), end, to, through_mlp=through_mlp)
    expected = by_hooks(plain, clean, corrupted, 1, receiver, to, through_mlp)
    torch.testing.assert_close(found, expected, atol=5e-6, rtol=1e-6)
    with torch.no_grad():
        before = metric(first(plain(**corrupted)))
    assert abs(found - before) > 3e-5, "a path without effect would prove nothing"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_path_with_a_head_off(family: str) -> None:
    model, plain, clean, corrupted, stack = made(family)
    out = layers(plain)[0].out
    weight = out.weight.data if family == "gpt2" else out.weight.data.T
    weight[2 * WIDTH : 3 * WIDTH] = 0
    with intervene({f"{stack}.0.self": off(2)}):
        found = path_patch(model, clean, corrupted, metric, (f"{stack}.0.self", 1), (f"{stack}.1.self", 0), "keys")
    torch.testing.assert_close(found, by_hooks(plain, clean, corrupted, 1, 0, "keys"), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_path_in_half_precision(family: str) -> None:
    model, plain, clean, corrupted, stack = made(family, torch.bfloat16)
    found = path_patch(model, clean, corrupted, metric, (f"{stack}.0.self", 1), (f"{stack}.1.self", 0), "values")
    expected = by_hooks(plain, clean, corrupted, 1, 0, "values")
    torch.testing.assert_close(found, expected, atol=0.05, rtol=0.05)


@torch.no_grad()
def test_a_path_from_the_encoder_to_the_values_of_a_decoder() -> None:
    """Against plain hooks: of the encoder, the feed-forward net of the last layer alone is between the two."""
    model = in_memory("t5")
    plain = copy.deepcopy(model)
    instrument(model)
    inputs = inputs_of(model)
    other = inputs | {"input_ids": inputs["input_ids"].roll(1, dims=1).where(inputs["attention_mask"] > 0, 0)}

    def read(logits: Tensor) -> Tensor:
        return logits[:, -1, 7].sum()

    ends = ("encoder.1.self", 2), ("decoder.1.cross", 1)
    found = path_patch(model, inputs, other, read, *ends, "values")
    layer, v = plain.encoder.block[1].layer, plain.decoder.block[1].layer[1].EncDecAttention.v
    written = (layer[0].SelfAttention.o, "in")
    mlp = (layer[1].DenseReluDense, "out")
    of_sender, of_receiver = (slice(head * WIDTH, head * WIDTH + WIDTH) for head in (2, 1))
    clean, before = (seen(plain, each, [written, mlp])[place] for each, place in ((inputs, written), (other, mlp)))
    changes = {written: lambda x: with_columns(x, of_sender, clean), mlp: lambda _x: before}
    with hooks(changes):
        values = seen(plain, other, [(v, "out")])[v, "out"]
    with hooks({(v, "out"): lambda x: with_columns(x, of_receiver, values)}):
        expected = read(plain(**other).logits)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    assert abs(found - read(plain(**other).logits)) > 1e-5, "a path without effect would prove nothing"
    with pytest.raises(ValueError, match="receiver: expected a call after 'decoder.1.cross'"):
        path_patch(model, inputs, other, read, *ends[::-1], "values")


EVERY = [(f"decoder.{layer}.self", head) for layer, head in product(range(2), range(HEADS))]
SOME = [("decoder.0.self", 1), ("decoder.0.self", 3), ("decoder.1.self", 0)]


@torch.no_grad()
def alone_by_hooks(plain: Any, clean: dict[str, Tensor], corrupted: dict[str, Tensor], circuit: list[Any]) -> Tensor:
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
    expected = torch.stack([alone_by_hooks(plain, clean, corrupted, circuit) for circuit in circuits])
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
