"""The schedule by hand, and each parameter stepped by the optimiser it belongs to."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from recipes.optimizer import Muon, Optimizers, learning_rate, orthogonalise
from viz_core.models import ViT
from viz_core.pretrained import build_translation_model

CONFIG = {
    "architecture": "transformer",
    "vocab_size": 13,
    "num_hiddens": 8,
    "ffn_num_hiddens": 12,
    "num_heads": 2,
    "num_blks": 1,
    "dropout": 0.0,
}


def test_schedules_by_hand() -> None:
    """Up over the first tenth, down from the middle in a line, or from a fifth along half a wave."""
    line = {0.0: 0.0, 0.05: 0.5, 0.1: 1.0, 0.3: 1.0, 0.5: 1.0, 0.75: 0.5, 0.9: 0.2, 1.0: 0.0, 1.1: 0.0}
    wave = {0.0: 0.0, 0.05: 0.5, 0.2: 1.0, 0.4: (1 + 0.5**0.5) / 2, 0.6: 0.5, 1.0: 0.0}
    assert {p: learning_rate(p, warm_up=0.1, decay_from=0.5) for p in line} == pytest.approx(line)
    assert {p: learning_rate(p, warm_up=0.1, decay_from=0.2, cosine=True) for p in wave} == pytest.approx(wave)


def groups(optimizers: Optimizers, model: nn.Module) -> tuple[set[str], set[str]]:
    """Names of the parameters of Muon and of Adam."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    parts = (optimizers.parts[which][0].param_groups for which in ("muon", "adam"))
    muon, adam = ({names[id(p)] for group in each for p in group["params"]} for each in parts)
    assert muon | adam == set(names.values())
    assert not muon & adam
    return muon, adam


def with_gradients(model: nn.Module, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=draw)


def test_matrices_go_to_muon_and_the_rest_to_adam() -> None:
    model = build_translation_model(CONFIG)
    muon, adam = groups(Optimizers(model, 0.02, 0.01, 0.1), model)
    assert all(".W_" in name or (".dense" in name and name.endswith("weight")) for name in muon)
    assert len(muon) == 6 + 10  # four projections and two dense layers; eight and two
    assert "encoder.embedding.weight" in adam  # also the output layer: they are one matrix
    assert "decoder.dense.bias" in adam

    vit = ViT(8, 4, 16, 24, 2, 1, 0.0, 0.0)
    muon, _ = groups(Optimizers(vit, 0.02, 0.01, 0.1, outputs=[vit.head]), vit)
    blocks = {f"attention.W_{which}" for which in "qkvo"} | {"mlp.dense1", "mlp.dense2"}
    assert muon == {f"blks.0.{layer}.weight" for layer in blocks}  # not positions, filters and the head


def test_a_step_is_that_of_torchs_optimisers(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's Muon works in bfloat16 on every device; asked for the same, ours makes the same steps."""
    monkeypatch.setattr("recipes.optimizer.fast_precision", lambda _: torch.bfloat16)
    model = build_translation_model(CONFIG)
    twin = copy.deepcopy(model)
    optimizers = Optimizers(model, muon_lr=0.02, adam_lr=0.01, weight_decay=0.1)
    embedding = twin.encoder.embedding.weight
    matrices = [p for p in twin.parameters() if p.dim() == 2 and p is not embedding]
    rest = [p for p in twin.parameters() if p.dim() != 2 or p is embedding]
    muon = torch.optim.Muon(matrices, lr=0.02, momentum=0.95, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    adam = torch.optim.AdamW(rest, lr=0.01, betas=(0.9, 0.98), weight_decay=0.0)
    for step, rate in enumerate((1.0, 0.25, 0.5)):
        with_gradients(model, step)
        with_gradients(twin, step)
        optimizers.step(rate)
        muon.param_groups[0]["lr"], adam.param_groups[0]["lr"] = 0.02 * rate, 0.01 * rate
        muon.step()
        adam.step()
    for (name, ours), theirs in zip(model.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5, msg=lambda text, name=name: f"{name}: {text}")
        assert ours.grad is None


def test_without_muon_adam_takes_everything_and_decays_matrices_alone() -> None:
    model = build_translation_model(CONFIG)
    before = copy.deepcopy(dict(model.named_parameters()))
    optimizers = Optimizers(model, None, 0.01, 0.1)
    assert set(optimizers.parts) == {"adam"}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizers.step(0.5)  # without a gradient only the decay moves: w <- w (1 - rate lr decay)
    for name, parameter in model.named_parameters():
        decayed = parameter.dim() == 2 and "embedding" not in name
        wanted = before[name] * (1 - 0.5 * 0.01 * 0.1) if decayed else before[name]
        torch.testing.assert_close(parameter, wanted, msg=lambda text, name=name: f"{name}: {text}")


@given(rows=st.integers(1, 9), columns=st.integers(1, 9), seed=st.integers(0, 99))
def test_singular_vectors_stay_and_singular_values_come_near_one(rows: int, columns: int, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    k = min(rows, columns)
    U = torch.linalg.qr(torch.randn(rows, k, generator=draw, dtype=torch.float64)).Q
    V = torch.linalg.qr(torch.randn(columns, k, generator=draw, dtype=torch.float64)).Q
    S = 0.2 + torch.rand(k, generator=draw, dtype=torch.float64)
    made = U.T @ orthogonalise(((U * S) @ V.T)[None])[0] @ V
    values = made.diagonal()
    torch.testing.assert_close(made, torch.diag(values), atol=1e-9, rtol=0)
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_a_matrix_without_a_gradient_of_any_size_stays_finite() -> None:
    assert torch.equal(orthogonalise(torch.zeros(2, 3, 5)), torch.zeros(2, 3, 5))


def test_the_first_step_by_hand() -> None:
    """A 1 x 1 matrix: the sign of the gradient, times the iteration's own value at 1."""
    p = nn.Parameter(torch.tensor([[2.0]]))
    p.grad = torch.tensor([[-7.0]])
    x = -1.0
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5
    Muon([p], lr=0.1, momentum=0.95, weight_decay=0.5, dtype=torch.float32).step()
    assert p.item() == pytest.approx(2.0 * (1 - 0.1 * 0.5) - 0.1 * 0.2 * math.sqrt(1) * x, rel=1e-5)
