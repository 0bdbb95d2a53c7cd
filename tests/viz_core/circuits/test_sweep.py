"""Sweeps, paths and gradients, against plain hooks."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.circuits.hooked import HEADS, WIDTH, first, hooks, made, metric, seen, with_columns
from tests.viz_core.hub.families import in_memory
from viz_core.circuits import patch_sweep, path_patch, sweep
from viz_core.hub import instrument
from viz_core.models import TransformerDecoder
from viz_core.trace import intervene, off, patch, record


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


def test_texts_of_other_lengths_are_refused() -> None:
    model, _, clean, corrupted, _ = made("gpt2")
    shorter = {name: each[:, :5] for name, each in corrupted.items()}
    with pytest.raises(ValueError, match="texts of the same lengths"):
        patch_sweep(model, clean, shorter, metric)
    with pytest.raises(ValueError, match="what: expected 'heads', 'cross-heads' or one of"):
        patch_sweep(model, clean, corrupted, metric, "x")


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
