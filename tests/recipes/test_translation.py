"""The training loop really learns, stops early, keeps its best, and follows the loss it says it does."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from recipes import translation as loop
from recipes.batches import collate, encode_pairs, translate_all
from recipes.sentence_pairs import Pair
from recipes.translation import batch_loss, mean_loss
from tests.recipes.small_translator import CONFIG, CPU, Trained, build, memory_left_alone, train
from viz_core.models import EncoderDecoder
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.decoding import beam_search, greedy_search

__all__ = ["memory_left_alone"]


# Learning


@pytest.fixture(scope="module")
def overfitted(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory, memory_left_alone: None) -> Trained:
    return train(pairs, tmp_path_factory.mktemp("overfitted"), CONFIG)


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_learns_32_pairs_by_heart(overfitted: Trained, pairs: list[Pair], search: Any) -> None:
    sentences = [pair.english for pair in pairs]
    texts = translate_all(overfitted.model, overfitted.tokenizer, sentences, search, CPU)
    assert corpus_bleu(texts, [[pair.french] for pair in pairs]) > 90


def test_the_loss_falls(overfitted: Trained) -> None:
    curve = overfitted.state.curve
    assert [point["epoch"] for point in curve] == list(range(1, 46))
    losses = [point["validation_loss"] for point in curve]
    assert losses[0] > 4
    assert losses[-1] < 0.2
    assert losses[20] < losses[5] < losses[0]
    assert curve[-1]["train_loss"] < 0.2 * curve[0]["train_loss"]
    assert overfitted.state.best_loss == pytest.approx(min(losses), abs=1e-4)


def test_the_model_comes_back_ready_with_its_best_weights(overfitted: Trained) -> None:
    assert not overfitted.model.training
    best = torch.load(overfitted.out / "best.pt", weights_only=True)
    assert all(torch.equal(best[name], tensor) for name, tensor in overfitted.model.state_dict().items())
    stored = Tokenizer.from_file(str(overfitted.out / "tokenizer.json"))
    assert stored.get_vocab() == overfitted.tokenizer.get_vocab()
    assert sorted(path.name for path in overfitted.out.iterdir()) == ["best.pt", "last.pt", "tokenizer.json"]


# Stopping, and which weights are kept


def test_patience_ends_training_and_the_best_weights_are_kept(
    pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([3.0, 1.0, 2.0, 1.5, 9.0])
    snapshots: list[Tensor] = []

    def scripted(model: EncoderDecoder, *rest: Any) -> float:
        snapshots.append(model.encoder.embedding.weight.detach().clone())
        return next(losses)

    monkeypatch.setattr(loop, "mean_loss", scripted)
    run = train(pairs, tmp_path, replace(CONFIG, epochs=50, patience=2))
    assert [point["validation_loss"] for point in run.state.curve] == [3.0, 1.0, 2.0, 1.5]
    assert run.state.best_loss == 1.0
    assert torch.equal(run.model.encoder.embedding.weight, snapshots[1])
    assert not torch.equal(snapshots[1], snapshots[3])


def test_minutes_end_training_in_the_middle_of_an_epoch(
    pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that moves ten seconds a step, a minute is six steps: an epoch and a half."""
    now = 0.0
    rates: list[float] = []
    step = loop.Optimizers.step

    def timed(self: loop.Optimizers, rate: float) -> None:
        nonlocal now
        now += 10
        rates.append(rate)
        step(self, rate)

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(loop.Optimizers, "step", timed)
    run = train(pairs, tmp_path, replace(CONFIG, epochs=1000), minutes=1)
    assert [point["epoch"] for point in run.state.curve] == [1.0, 1.5]
    assert run.state.elapsed == torch.load(tmp_path / "last.pt", weights_only=True)["state"]["elapsed"] == 60
    # up over the first tenth of the minute, down from its middle, however many epochs that makes
    assert rates == pytest.approx([0, 1, 1, 1, 2 / 3, 1 / 3])


# The losses


def gradient_norm(model: EncoderDecoder) -> float:
    return float(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm())


def test_each_step_follows_the_clipped_gradient_of_the_mean_loss(
    pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    norms: list[float] = []

    class Watching(loop.Optimizers):
        def __init__(self, model: EncoderDecoder, *rates: float) -> None:
            super().__init__(model, *rates)
            self.model = model

        def step(self, rate: float) -> None:
            norms.append(gradient_norm(self.model))
            super().step(rate)

    monkeypatch.setattr(loop, "Optimizers", Watching)
    run = train(pairs, tmp_path / "free", replace(CONFIG, epochs=1, clip_norm=1e9))
    examples = encode_pairs(run.tokenizer, pairs, 100)
    torch.manual_seed(CONFIG.seed)
    model = build(run.tokenizer.get_vocab_size())  # as it was before its first step
    plan = loop.plan_batches(examples, CONFIG.batch_tokens, seed=CONFIG.seed)[0]
    loss, count = batch_loss(model, collate([examples[i] for i in plan], 0), 0, CONFIG.label_smoothing)
    (loss / count).backward()
    assert norms[0] == pytest.approx(gradient_norm(model), rel=1e-3)

    norms.clear()
    train(pairs, tmp_path / "clipped", replace(CONFIG, epochs=1, clip_norm=0.01))
    assert norms == pytest.approx([0.01] * len(norms), rel=1e-3)


def test_batch_loss_is_that_of_the_real_target_tokens(overfitted: Trained, pairs: list[Pair]) -> None:
    model, tokenizer = overfitted.model, overfitted.tokenizer
    batch = collate(encode_pairs(tokenizer, pairs[:6], 100), pad=0)
    for smoothing in (0.0, 0.1):
        loss, count = batch_loss(model, batch, 0, smoothing)
        wanted = batch.target[:, 1:]
        assert count == int((wanted != 0).sum())
        logits = model(batch.source, batch.target[:, :-1], batch.valid_lens).flatten(0, 1)
        expected = F.cross_entropy(
            logits, wanted.flatten(), ignore_index=0, reduction="none", label_smoothing=smoothing
        )[wanted.flatten() != 0].sum()
        torch.testing.assert_close(loss, expected, atol=0.1, rtol=0.05)  # its products are in bfloat16


def test_mean_loss_does_not_depend_on_how_examples_are_batched(overfitted: Trained, pairs: list[Pair]) -> None:
    model = build(overfitted.tokenizer.get_vocab_size())  # an untrained one, whose loss is large
    examples = encode_pairs(overfitted.tokenizer, pairs, 100)
    losses = [mean_loss(model, examples, tokens, 0, CPU) for tokens in (1, 100, 10_000)]
    assert losses == pytest.approx([losses[0]] * 3, rel=5e-3)
    assert mean_loss(overfitted.model, examples, 256, 0, CPU) == pytest.approx(overfitted.state.best_loss, rel=0.05)
    assert mean_loss(model, [], 256, 0, CPU) == 0.0


def test_the_curve_is_printed_as_it_grows(
    pairs: list[Pair], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(pairs, tmp_path, replace(CONFIG, epochs=1))
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert printed == run.state.curve
    assert printed[0].keys() == {"epoch", "train_loss", "validation_loss", "validation_bleu"}
