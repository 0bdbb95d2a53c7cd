"""Sweeps, paths and gradients, against plain hooks."""

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from tests.viz_core.hub.families import in_memory
from viz_core.circuits import patch_sweep, sweep
from viz_core.hub import instrument
from viz_core.models import TransformerDecoder
from viz_core.trace import intervene, off, patch, record

CLEAN = torch.tensor([[5, 6, 7, 8, 9, 6], [5, 6, 7, 8, 0, 0]])
CORRUPTED = torch.tensor([[5, 6, 3, 8, 9, 6], [5, 11, 7, 8, 0, 0]])
MASK = (CLEAN > 0).long()


def metric(logits: Tensor) -> Tensor:
    return (logits[0, -1, 3] - logits[0, -1, 4]) + 0.5 * (logits[1, 3, 8] - logits[1, 3, 2])


def made(
    dtype: torch.dtype = torch.float32, left: bool = False
) -> tuple[Any, Any, dict[str, Tensor], dict[str, Tensor]]:
    """A GPT-2 with instruments, one without, and inputs; padding after the text, or before it."""
    torch.manual_seed(2)
    config = transformers.GPT2Config(
        n_layer=3, n_head=4, n_embd=16, vocab_size=20, n_positions=16, bos_token_id=1, eos_token_id=1
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.8)
    model = model.to(dtype)
    plain = transformers.GPT2LMHeadModel(config).eval().to(dtype)
    plain.load_state_dict(model.state_dict())
    instrument(model)
    inputs = [{"input_ids": ids, "attention_mask": MASK} for ids in (CLEAN, CORRUPTED)]
    if left:
        inputs = [{name: each.flip(1) for name, each in own.items()} for own in inputs]
    return model, plain, *inputs  # type: ignore[return-value]


def part(plain: Any, what: str, layer: int) -> Any:
    block = plain.transformer.h[layer]
    return {"residual": block, "attention": block.attn, "mlp": block.mlp, "heads": block.attn.c_proj}[what]


def value(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


@torch.no_grad()
def by_hooks(plain: Any, clean: Any, corrupted: Any, what: str, left: bool) -> Tensor:
    rows, seen = [], dict[str, Tensor]()
    for layer in range(3):
        module, row = part(plain, what, layer), []
        seen.clear()
        if what == "heads":
            handle = module.register_forward_pre_hook(lambda _m, given: seen.update(x=given[0]))
        else:
            handle = module.register_forward_hook(lambda _m, _i, out: seen.update(x=value(out)))
        plain(**clean)
        handle.remove()
        for cell in range(4 if what == "heads" else 6):

            def changed(given: Tensor, cell: int = cell) -> Tensor:
                given = given.clone()
                if what == "heads":
                    given[..., 4 * cell : 4 * cell + 4] = seen["x"][..., 4 * cell : 4 * cell + 4]
                else:
                    for text in range(2):
                        place = cell + (2 if left and text else 0)
                        if place < 6 and clean["attention_mask"][text, place]:
                            given[text, place] = seen["x"][text, place]
                return given

            if what == "heads":
                handle = module.register_forward_pre_hook(lambda _m, given: (changed(given[0]),))
            else:
                handle = module.register_forward_hook(
                    lambda _m, _i, out: (changed(out[0]), *out[1:]) if isinstance(out, tuple) else changed(out)
                )
            row.append(metric(plain(**corrupted).logits).float())
            handle.remove()
        rows.append(torch.stack(row))
    return torch.stack(rows)


@pytest.mark.parametrize("what", ["residual", "attention", "mlp", "heads"])
@pytest.mark.parametrize("left", [False, True], ids=["padded after", "padded before"])
def test_a_sweep_is_that_of_plain_hooks(what: str, left: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "CELLS", 4)
    model, plain, clean, corrupted = made(left=left)
    found = patch_sweep(model, clean, corrupted, metric, what)
    torch.testing.assert_close(found, by_hooks(plain, clean, corrupted, what, left), atol=1e-5, rtol=1e-4)
    assert found.std() > 0.01


def test_a_sweep_in_half_precision_and_with_a_head_off() -> None:
    model, plain, clean, corrupted = made(torch.bfloat16)
    found = patch_sweep(model, clean, corrupted, metric)
    torch.testing.assert_close(found, by_hooks(plain, clean, corrupted, "residual", False), atol=0.2, rtol=0.05)
    model, plain, clean, corrupted = made()
    plain.transformer.h[1].attn.c_proj.weight.data[:4] = 0
    with intervene({"decoder.1.self": off(0)}):
        found = patch_sweep(model, clean, corrupted, metric)
    torch.testing.assert_close(found, by_hooks(plain, clean, corrupted, "residual", False), atol=1e-5, rtol=1e-4)


def test_texts_of_other_lengths_are_refused() -> None:
    model, _, clean, corrupted = made()
    shorter = {name: each[:, :5] for name, each in corrupted.items()}
    with pytest.raises(ValueError, match="texts of the same lengths"):
        patch_sweep(model, clean, shorter, metric)
    with pytest.raises(ValueError, match="what: expected 'heads', 'cross-heads' or one of"):
        patch_sweep(model, clean, corrupted, metric, "x")


def test_layers_that_are_called_again_are_refused() -> None:
    """An edit of a layer would change every call of it."""
    model = in_memory("albert")
    instrument(model)
    inputs = {"input_ids": torch.tensor([[5, 6, 7]])}, {"input_ids": torch.tensor([[5, 9, 7]])}
    for what in ("residual", "heads"):
        with pytest.raises(ValueError, match=r"model: expected layers that are called once each, got encoder.0.self@2"):
            patch_sweep(model, *inputs, lambda states: states[0, -1, 0], what)


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
