"""A training step: the loss and the optimisers against those of torch, schedules and penalties on attention by hand."""

import copy
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from recipes.loop import fast_pass, smoothed_cross_entropy
from recipes.optimizer import Muon, Optimizers, learning_rate, orthogonalise
from recipes.sentence_pairs import Pair
from recipes.spread import alignment_penalty, guide_penalty, spread_penalty, token_penalty
from tests.recipes.conftest import CONFIG, SHORT, train
from viz_core.models import EncoderDecoder, ViT
from viz_core.pretrained import build_translation_model
from viz_core.trace import record

MODEL = {
    "architecture": "transformer",
    "vocab_size": 13,
    "num_hiddens": 8,
    "ffn_num_hiddens": 12,
    "num_heads": 2,
    "num_blks": 1,
    "dropout": 0.0,
}


def test_schedules_by_hand() -> None:
    """Up over the first tenth, down from the middle in a line."""
    line = {0.0: 0.0, 0.05: 0.5, 0.1: 1.0, 0.3: 1.0, 0.5: 1.0, 0.75: 0.5, 0.9: 0.2, 1.0: 0.0, 1.1: 0.0}
    assert {p: learning_rate(p, warm_up=0.1, decay_from=0.5) for p in line} == pytest.approx(line)


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
    model = build_translation_model(MODEL)
    muon, adam = groups(Optimizers(model, 0.02, 0.01, 0.1), model)
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
    model = build_translation_model(MODEL)
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


def test_the_first_step_by_hand() -> None:
    """A 1 x 1 matrix: the sign of the gradient, times the iteration's own value at 1; of zeros, zeros."""
    assert torch.equal(orthogonalise(torch.zeros(2, 3, 5)), torch.zeros(2, 3, 5))
    p = nn.Parameter(torch.tensor([[2.0]]))
    p.grad = torch.tensor([[-7.0]])
    x = -1.0
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5
    Muon([p], lr=0.1, momentum=0.95, weight_decay=0.5, dtype=torch.float32).step()
    assert p.item() == pytest.approx(2.0 * (1 - 0.1 * 0.5) - 0.1 * 0.2 * math.sqrt(1) * x, rel=1e-5)


VOCAB, WIDTH = 37, 12


def inputs(tokens: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    hidden = torch.randn(tokens, WIDTH).to(dtype).requires_grad_()
    weight = torch.randn(VOCAB, WIDTH, requires_grad=True)
    bias = torch.randn(VOCAB, requires_grad=True)
    return hidden, weight, bias, torch.randint(0, VOCAB, (tokens,))


def reference(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> list[Tensor]:
    """Value and gradients by torch, in float64."""
    leaves = [t.detach().double().requires_grad_() for t in (hidden, weight, bias)]
    logits = leaves[0] @ leaves[1].T + leaves[2]
    value = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    return [value, *torch.autograd.grad(value, leaves)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("tokens", [1, 513, 1300])
def test_equals_torchs_loss_with_any_gradient_from_above(tokens: int, smoothing: float) -> None:
    hidden, weight, bias, targets = inputs(tokens)
    expected, *gradients = reference(hidden, weight, bias, targets, smoothing)
    value = smoothed_cross_entropy(hidden, weight, bias, targets, smoothing)
    assert value.shape == ()
    torch.testing.assert_close(value.double(), expected, atol=0, rtol=1e-5)
    (value / 20 * -3).backward()
    for leaf, gradient in zip((hidden, weight, bias), gradients, strict=True):
        assert leaf.grad is not None
        torch.testing.assert_close(leaf.grad.double(), gradient * -3 / 20, atol=1e-3, rtol=1e-4)


CPU = torch.device("cpu")
FULL, HALF = (3, 4, 9, 8), (3, 2, 9, 8)
CASES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "plain": (FULL, {}),
    "causal": (FULL, {"is_causal": True, "scale": 0.5}),
    "grouped": (HALF, {"enable_gqa": True}),
    "masked": (FULL, {"attn_mask": torch.arange(9) < torch.tensor([9, 4, 1])[:, None, None, None]}),
    "biased": (FULL, {"attn_mask": torch.linspace(-3, 3, 81).reshape(1, 1, 9, 9)}),
}


@pytest.fixture(params=[torch.bfloat16, torch.float32], ids=["bfloat16", "float32"])
def precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.dtype:
    """The device's fast one, whatever this machine's is."""
    monkeypatch.setattr("recipes.loop.fast_precision", lambda _: request.param)
    return request.param


def kernel_gradients(inputs: list[Tensor], dtype: torch.dtype, options: dict[str, Any]) -> list[Tensor]:
    """The output of attention in this precision, and the gradients of its inputs for upstream ones from -1 to 1."""
    inputs = [x.detach().to(dtype).requires_grad_() for x in inputs]
    mask = options.get("attn_mask")
    if mask is not None and mask.dtype != torch.bool:  # the kernel wants an added one in the queries' precision
        options = {"attn_mask": mask.to(dtype)}
    output = F.scaled_dot_product_attention(*inputs, **options)
    upstream = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).reshape(output.shape)
    return [output, *torch.autograd.grad(output, inputs, upstream)]


@pytest.mark.parametrize("case", CASES)
def test_output_and_gradients_are_those_of_the_kernel(case: str, precision: torch.dtype) -> None:
    shape, options = CASES[case]
    generator = torch.Generator().manual_seed(3)
    inputs = [torch.randn(s, generator=generator).to(precision) for s in (FULL, shape, shape)]
    expected = kernel_gradients(inputs, torch.float64, options)
    with fast_pass(CPU):
        found = kernel_gradients(inputs, precision, options)
    for one, wanted in zip(found, expected, strict=True):
        assert one.dtype == precision
        error = float((one.detach() - wanted.detach()).norm() / wanted.detach().norm())
        assert error < (8e-3 if precision == torch.bfloat16 else 1e-6)  # bfloat16 rounds by up to 2^-8


def test_uniform_attention_costs_nothing_and_a_column_what_the_formula_says() -> None:
    visible = torch.ones(1, 4, 4, dtype=torch.bool)
    marks = torch.tensor([3])
    assert token_penalty(torch.full((1, 2, 4, 4), 0.25), visible, marks) == 0
    column = torch.zeros(1, 1, 4, 4)
    column[..., 3] = 1.0
    # on the mark 1 - (1/4 + 0.25) a query; the column 1 - (1/4 + 0.35)
    assert float(token_penalty(column, visible, marks)) == pytest.approx(0.5 + 0.4)
    assert float(token_penalty(column.flip(-1), visible, marks)) == pytest.approx(0.4)


def test_padding_and_queries_that_see_one_key_count_nowhere() -> None:
    causal = torch.ones(1, 3, 3, dtype=torch.bool).tril()
    weights = torch.tensor([[[[1.0, 0, 0], [1.0, 0, 0], [0.75, 0.125, 0.125]]]])
    # queries 2 and 3: 1 - (1/2 + 0.25) and 0.75 - (1/3 + 0.25); key 1: (1 + 0.75) / 2 - ((1/2 + 1/3) / 2 + 0.35)
    expected = (0.25 + 0.5 - 1 / 3) / 2 + 0.875 - 5 / 12 - 0.35
    assert float(token_penalty(weights, causal, torch.tensor([0]))) == pytest.approx(expected)
    padded = torch.zeros(1, 1, 5, 5)
    padded[..., :3, :3], padded[..., 3:, 0] = weights, 1.0
    room = torch.zeros(1, 5, 5, dtype=torch.bool)
    room[:, :3, :3] = causal
    assert float(token_penalty(padded, room, torch.tensor([0]))) == pytest.approx(expected)


def test_guide_penalty_by_hand() -> None:
    visible = torch.zeros(1, 4, 4, dtype=torch.bool)
    visible[:, :3, :3] = torch.ones(3, 3, dtype=torch.bool).tril()  # the fourth token is padding
    weights = torch.tensor([[1.0, 0, 0, 0], [0.25, 0.75, 0, 0], [0.1, 0.4, 0.5, 0], [0, 0, 0, 1]]).expand(1, 3, 4, 4)
    # the first query sees itself alone and counts nowhere; before: 0.6 - 0.25 and 0.6 - 0.4; itself: 0 and 0.1
    before, itself = (0.35 + 0.2) / 2, 0.1 / 2
    assert float(guide_penalty(weights, visible, "<.=")) == pytest.approx(before + itself)
    assert float(guide_penalty(weights, visible, ">..")) == 0  # a causal head sees no next token


def test_training_with_penalties_spreads_looks_back_aligns_and_holds_whole_numbers(
    pairs: list[Pair], tmp_path: Path
) -> None:
    heads: dict[str, Any] = {"aligned": ("decoder.1.cross", 0), "reader": ("decoder.0.cross", 1)}

    def found(**penalties: Any) -> tuple[float, float, float, EncoderDecoder]:
        config = replace(SHORT, max_score_range=20.0, rounded=True, **heads, **penalties)
        model = train(pairs, tmp_path / str(len(penalties)), config).model
        inputs = torch.randint(4, 60, (4, 9)), torch.randint(4, 60, (4, 8)), torch.tensor([9, 9, 9, 9])
        with record(differentiable=True) as trace:
            model(*inputs)
        tokens = torch.ones(4, 8, dtype=torch.bool)
        before = trace["encoder.0.self"].graph_weights[:, 0].diagonal(-1, -2, -1).mean()
        aligned = alignment_penalty(trace, tokens, **heads)
        with torch.no_grad():
            return float(spread_penalty(trace, inputs[2], tokens)), float(before), float(aligned), model

    def whole(row: Tensor) -> bool:
        return torch.equal(row.round(), row) and float(row.abs().max()) <= 127

    guides = dict.fromkeys(("encoder.0.self", "decoder.0.self"), "<...")
    resting, before, apart, _ = found()
    spread, looking, aligned, model = found(spread_penalty=3.0, guide_penalty=9.0, guides=guides, align_penalty=9.0)
    assert spread < resting
    assert looking > before
    assert aligned < apart
    for name, matrix in model.named_parameters():
        if matrix.dim() == 2:
            assert all(any(whole(row * 2.0**-e) for e in range(-24, 4)) for row in matrix), name
    with pytest.raises(ValueError, match="expected both heads or none"):
        train(pairs, tmp_path / "one", replace(CONFIG, aligned=heads["aligned"]))


def test_alignment_penalty_by_hand() -> None:
    """Rows of three steps over two words, the third step padding in the second sentence."""
    written = torch.tensor([[[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]], [[0.8, 0.2], [0.0, 1.0], [0.0, 1.0]]])
    read = torch.tensor(
        [[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]], requires_grad=True
    )
    calls = [
        SimpleNamespace(site=site, graph_weights=torch.stack([torch.zeros_like(weights), weights], dim=1))
        for site, weights in (("decoder.2.cross", written), ("decoder.0.cross", read))
    ]
    real = torch.tensor([[True, True, True], [True, True, False]])
    found = alignment_penalty(cast(Any, calls), real, ("decoder.2.cross", 1), ("decoder.0.cross", 1))
    # what step i writes is read by step i + 1: (-log 0.75 - log 0.5) of the first sentence, -log 0.8 of the second
    assert float(found) == pytest.approx(-math.log(0.75 * 0.5 * 0.8) / 3)
    assert not found.requires_grad  # constants: the head that reads is not moved towards the one that learns
