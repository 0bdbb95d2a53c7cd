"""Sweeps and their estimates from gradients, against plain hooks."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.circuits.hooked import HEADS, WIDTH, first, hooks, layers, made, metric, seen, with_columns
from tests.viz_core.hub.families import in_memory
from viz_core.circuits import attribution_patch, patch_sweep, path_patch, sweep
from viz_core.hub import instrument
from viz_core.models import TransformerDecoder
from viz_core.trace import intervene, knock_out, off, patch, record


@torch.no_grad()
def by_hooks(plain: Any, clean: Any, corrupted: Any, what: str, left: bool = False) -> Tensor:
    rows = []
    for block in plain.transformer.h:
        parts = {"residual": block, "attention": block.attn, "mlp": block.mlp, "heads": block.attn.c_proj}
        place, row = (parts[what], "in" if what == "heads" else "out"), []
        taken = seen(plain, clean, [place])[place]
        for cell in range(HEADS if what == "heads" else 6):

            def changed(given: Tensor, cell: int = cell, taken: Tensor = taken) -> Tensor:
                if what == "heads":
                    return with_columns(given, slice(cell * WIDTH, cell * WIDTH + WIDTH), taken)
                given = given.clone()
                for text in range(2):
                    at = cell + (2 if left and text else 0)
                    if at < 6 and clean["attention_mask"][text, at]:
                        given[text, at] = taken[text, at]
                return given

            with hooks({place: changed}):
                row.append(metric(first(plain(**corrupted))).float())
        rows.append(torch.stack(row))
    return torch.stack(rows)


@pytest.mark.parametrize("what", ["residual", "attention", "mlp", "heads"])
@pytest.mark.parametrize("left", [False, True], ids=["padded after", "padded before"])
def test_a_sweep_is_that_of_plain_hooks(what: str, left: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "CELLS", 4)
    model, plain, *inputs, _ = made("gpt2")
    clean, corrupted = ({k: each.flip(1) if left else each for k, each in own.items()} for own in inputs)
    found = patch_sweep(model, clean, corrupted, metric, what)
    torch.testing.assert_close(found, by_hooks(plain, clean, corrupted, what, left), atol=1e-5, rtol=1e-4)
    assert found.std() > 0.01


def test_a_sweep_in_half_precision_and_with_a_head_off() -> None:
    model, plain, clean, corrupted, _ = made("gpt2", torch.bfloat16)
    found = patch_sweep(model, clean, corrupted, metric)
    torch.testing.assert_close(found, by_hooks(plain, clean, corrupted, "residual"), atol=0.2, rtol=0.05)
    model, plain, clean, corrupted, _ = made("gpt2")
    plain.transformer.h[1].attn.c_proj.weight.data[:WIDTH] = 0
    with intervene({"decoder.1.self": off(0)}):
        found = patch_sweep(model, clean, corrupted, metric)
    torch.testing.assert_close(found, by_hooks(plain, clean, corrupted, "residual"), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("what", ["residual", "attention", "mlp", "heads"])
@pytest.mark.parametrize("family", ["gpt2", "llama", "bert-fills", "ours"])
def test_layers_before_a_cell_are_computed_once_for_a_text(family, what, monkeypatch):
    """The metrics of a sweep that computes them for each copy, with heads edited and padding."""
    monkeypatch.setattr(sweep, "CELLS", 4)
    model, _, *inputs, stack = made(family)
    clean, corrupted = ({name: each[1:] for name, each in own.items()} for own in inputs)
    batches = list[int]()
    entered = layers(model)[0].attention.register_forward_pre_hook(
        lambda _layer, given, named: batches.append(len([*given, *named.values()][0])), with_kwargs=True
    )

    def number(logits: Tensor) -> Tensor:
        return logits[0, -1].float().softmax(dim=-1)[:3].sum() * 9

    site = f"{stack}.1.self"
    with intervene({site: [off(0), knock_out(1, query=1, key=0)]}):
        found = patch_sweep(model, clean, corrupted, number, what)
        entered.remove()
        monkeypatch.setattr(sweep, "find_entries", lambda *_: {})
        expected = patch_sweep(model, clean, corrupted, number, what)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    assert found.std() > 1e-4
    own_layer = 0 if what == "residual" else 1  # whose copies are made before it
    assert sum(batch > 1 for batch in batches) == (len(found) if family == "ours" else own_layer)


def test_copies_are_made_at_the_input_of_a_model_that_counts_its_texts_there(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _, *inputs, _ = made("gpt2")
    clean, corrupted = ({name: each[1:] for name, each in own.items()} for own in inputs)
    counts = list[int]()
    model.register_forward_pre_hook(lambda *given: counts.append(len(given[2]["input_ids"])), with_kwargs=True)

    def first_texts(_layer: Any, _given: Any, output: Any) -> Any:
        own = first(output)[: counts[-1]].repeat(len(first(output)) // counts[-1], 1, 1)
        return (own, *output[1:]) if isinstance(output, tuple) else own

    def number(logits: Tensor) -> Tensor:
        return logits[0, -1].float().softmax(dim=-1)[:3].sum() * 9

    model.transformer.h[-1].register_forward_hook(first_texts)
    found = patch_sweep(model, clean, corrupted, number)
    monkeypatch.setattr(sweep, "find_entries", lambda *_: {})
    torch.testing.assert_close(found, patch_sweep(model, clean, corrupted, number), atol=1e-5, rtol=1e-4)
    assert found.std(dim=1).max() > 1e-4


def test_each_call_of_a_shared_layer_is_patched_alone() -> None:
    """As in a model whose layers are copies of the shared one."""
    shared, copies = in_memory("albert"), in_memory("albert", num_hidden_groups=3)
    for group in copies.encoder.albert_layer_groups:
        group.load_state_dict(shared.encoder.albert_layer_groups[0].state_dict())
    copies.load_state_dict(shared.state_dict(), strict=False)
    inputs = {"input_ids": torch.tensor([[5, 6, 7]])}, {"input_ids": torch.tensor([[5, 9, 7]])}
    instrument(shared)
    instrument(copies)

    def metric(states: Tensor) -> Tensor:
        return states[0, -1, 0]

    for what in ("residual", "heads"):
        found = patch_sweep(shared, *inputs, metric, what)
        assert torch.equal(found, patch_sweep(copies, *inputs, metric, what))
        assert len(found) == 3
    for ends in ((("encoder.0.self", 1),), (("encoder.0.self", 1), ("encoder.2.self", 0))):
        assert path_patch(shared, *inputs, metric, *ends) == path_patch(copies, *inputs, metric, *ends)


def test_heads_of_cross_attention_are_swept_one_by_one() -> None:
    torch.manual_seed(1)
    decoder = TransformerDecoder(11, 16, 24, 4, 2, 0.0).eval()
    ids = torch.tensor([[3, 4, 5]])
    clean, corrupted = ({"X": ids, "state": decoder.init_state(torch.randn(1, 4, 16))} for _ in range(2))

    def number(logits: Tensor) -> Tensor:
        return logits[0, -1, 2]

    found = patch_sweep(decoder, clean, corrupted, number, "cross-heads")
    with torch.no_grad(), record(values=True) as run:
        decoder(**clean)
    for layer, head in ((0, 1), (1, 3)):
        site = f"decoder.{layer}.cross"
        with torch.no_grad(), intervene({site: patch(head, run[site], "output")}):
            torch.testing.assert_close(found[layer, head], number(decoder(**corrupted)[0]))


POSITIONS = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, -1, -1]])
FAMILIES = ["ours", "gpt2", "llama", "bert-fills"]


def estimates_by_hooks(plain: object, clean: object, corrupted: object, what: str) -> Tensor:
    """m + (clean - corrupted) . dm/da, with a caught by plain hooks and caught in the graph."""
    at = {"attention": "attention", "mlp": "mlp", "heads": "out"}[what]
    places = [(getattr(layer, at), "in" if what == "heads" else "out") for layer in layers(plain)]
    with torch.no_grad():
        new, old = seen(plain, clean, places), seen(plain, corrupted, places)
    caught: dict[object, Tensor] = {}

    def keep(place: object, x: Tensor) -> Tensor:
        caught[place] = x + torch.zeros_like(x, requires_grad=True)
        caught[place].retain_grad()
        return caught[place]

    with hooks({place: lambda x, place=place: keep(place, x) for place in places}):
        value = metric(first(plain(**corrupted)))  # type: ignore[operator]
    value.backward()
    rows = []
    for place in places:
        change = (new[place] - old[place]) * caught[place].grad
        if what == "heads":
            rows.append(change.unflatten(-1, (-1, WIDTH)).sum(dim=(0, 1, 3)))
        else:
            each = change.sum(dim=-1)
            rows.append(torch.stack([each[i == POSITIONS].sum() for i in range(6)]))
    return (value + torch.stack(rows)).detach().float()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("what", ["attention", "mlp", "heads"])
def test_an_estimate_is_that_of_plain_hooks(family: str, what: str) -> None:
    model, plain, clean, corrupted, _ = made(family)
    found = attribution_patch(model, clean, corrupted, metric, what)
    torch.testing.assert_close(found.grid, estimates_by_hooks(plain, clean, corrupted, what), atol=2e-5, rtol=1e-4)
    assert found.grid.std() > 1e-3
    assert found[1:] == (None, None, None)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_estimate_with_a_head_off_and_in_half_precision(family: str) -> None:
    model, plain, clean, corrupted, stack = made(family)
    out = layers(plain)[0].out
    weight = out.weight.data if family == "gpt2" else out.weight.data.T
    weight[2 * WIDTH : 3 * WIDTH] = 0
    with intervene({f"{stack}.0.self": off(2)}):
        found = attribution_patch(model, clean, corrupted, metric, "mlp")
    torch.testing.assert_close(found.grid, estimates_by_hooks(plain, clean, corrupted, "mlp"), atol=2e-5, rtol=1e-4)
    model, plain, clean, corrupted, _ = made(family, torch.bfloat16)
    found = attribution_patch(model, clean, corrupted, metric, "mlp")
    torch.testing.assert_close(found.grid, estimates_by_hooks(plain, clean, corrupted, "mlp"), atol=0.1, rtol=0.1)
