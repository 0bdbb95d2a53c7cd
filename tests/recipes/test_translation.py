"""The training loop learns, stops early, keeps its best weights, resumes bit for bit."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from recipes import translation
from recipes.files import Clock
from recipes.loop import distilled_cross_entropy
from recipes.sentence_pairs import Pair, collate, encode_pairs, translate_all
from recipes.translation import batch_loss, mean_loss
from tests.recipes.conftest import CONFIG, CPU, SHORT, Trained, build, train
from viz_core.models import EncoderDecoder
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.decoding import greedy_search


@pytest.fixture(scope="module")
def overfitted(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train(pairs, tmp_path_factory.mktemp("overfitted"), CONFIG)


@pytest.fixture(scope="module")
def uninterrupted(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train(pairs, tmp_path_factory.mktemp("uninterrupted"), SHORT)


def test_it_learns_32_pairs_by_heart(overfitted: Trained, pairs: list[Pair]) -> None:
    model, tokenizer, state, out = overfitted
    texts = translate_all(model, tokenizer, [pair.english for pair in pairs], greedy_search, CPU)
    assert corpus_bleu(texts, [[pair.french] for pair in pairs]) > 90
    assert [point["epoch"] for point in state.curve] == list(range(1, 31))
    losses = [point["validation_loss"] for point in state.curve]
    assert losses[-1] < 0.2 < 4 < losses[0]
    assert state.best_loss == pytest.approx(min(losses), abs=1e-4)
    assert not model.training
    best = torch.load(out / "best.pt", weights_only=True)
    assert all(torch.equal(best[name], tensor) for name, tensor in model.state_dict().items())


def test_patience_ends_training_and_the_best_weights_are_kept(
    pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    losses = iter([3.0, 1.0, 2.0, 1.5, 9.0])
    snapshots: list[Tensor] = []

    def scripted(model: EncoderDecoder, *rest: Any) -> float:
        snapshots.append(model.encoder.embedding.weight.detach().clone())
        return next(losses)

    monkeypatch.setattr(translation, "mean_loss", scripted)
    run = train(pairs, tmp_path, replace(CONFIG, epochs=50, patience=2))
    assert [point["validation_loss"] for point in run.state.curve] == [3.0, 1.0, 2.0, 1.5]
    assert run.state.best_loss == 1.0
    assert torch.equal(run.model.encoder.embedding.weight, snapshots[1])
    assert not torch.equal(snapshots[1], snapshots[3])
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert printed == run.state.curve


def test_each_step_follows_the_clipped_gradient_of_the_mean_loss(
    pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    norms: list[float] = []

    def norm(model: EncoderDecoder) -> float:
        return float(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm())

    class Watching(translation.Optimizers):
        def __init__(self, model: EncoderDecoder, *rates: float, rounded: bool) -> None:
            super().__init__(model, *rates, rounded=rounded)
            self.model = model

        def step(self, rate: float, then: Callable[[], None] = lambda: None) -> None:
            norms.append(norm(self.model))
            super().step(rate, then)

    monkeypatch.setattr(translation, "Optimizers", Watching)
    run = train(pairs, tmp_path / "free", replace(CONFIG, epochs=1, clip_norm=1e9))
    examples = encode_pairs(run.tokenizer, pairs, 100)
    torch.manual_seed(CONFIG.seed)
    model = build(run.tokenizer.get_vocab_size())  # as it was before its first step
    plan = translation.plan_batches(examples, CONFIG.batch_tokens, seed=CONFIG.seed)[0]
    loss, count = batch_loss(model, collate([examples[i] for i in plan], 0), 0, CONFIG.label_smoothing)
    (loss / count).backward()
    assert norms[0] == pytest.approx(norm(model), rel=1e-3)

    norms.clear()
    train(pairs, tmp_path / "clipped", replace(CONFIG, epochs=1, clip_norm=0.01))
    assert norms == pytest.approx([0.01] * len(norms), rel=1e-3)


def test_losses_are_of_the_real_target_tokens_however_they_are_batched(overfitted: Trained, pairs: list[Pair]) -> None:
    examples = encode_pairs(overfitted.tokenizer, pairs, 100)
    batch = collate(examples[:6], pad=0)
    wanted = batch.target[:, 1:]
    for smoothing in (0.0, 0.1):
        loss, count = batch_loss(overfitted.model, batch, 0, smoothing)
        assert count == int((wanted != 0).sum())
        logits = overfitted.model(batch.source, batch.target[:, :-1], batch.valid_lens).flatten(0, 1)
        expected = F.cross_entropy(
            logits, wanted.flatten(), ignore_index=0, reduction="none", label_smoothing=smoothing
        )[wanted.flatten() != 0].sum()
        torch.testing.assert_close(loss, expected, atol=0.1, rtol=0.05)  # its products are in bfloat16
    untrained = build(overfitted.tokenizer.get_vocab_size())  # whose loss is large
    losses = [mean_loss(untrained, examples, tokens, 0, CPU) for tokens in (1, 100, 10_000)]
    assert losses == pytest.approx([losses[0]] * 3, rel=5e-3)
    assert mean_loss(overfitted.model, examples, 256, 0, CPU) == pytest.approx(overfitted.state.best_loss, rel=0.05)
    assert mean_loss(untrained, [], 256, 0, CPU) == 0.0


def test_taught_targets_are_mixed_from_what_was_written_and_what_the_teacher_predicts(pairs: list[Pair]) -> None:
    torch.manual_seed(0)
    scores, taught = torch.randn(5, 9), torch.randn(5, 9).softmax(-1)
    targets = torch.tensor([0, 3, 8, 3, 1])
    for share in (0.0, 0.75, 1.0):
        mixed = share * taught + (1 - share) * F.one_hot(targets, 9)
        expected = F.cross_entropy(scores, mixed, reduction="sum")
        torch.testing.assert_close(distilled_cross_entropy(scores.log_softmax(-1), taught, targets, share), expected)


class Killed(BaseException):
    """What no except clause of the loop catches."""


def test_a_killed_run_ends_where_an_uninterrupted_one_does(
    uninterrupted: Trained, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saved after each batch, killed in the middle of an epoch: bit for bit the same weights."""
    config = replace(SHORT, save_minutes=0.0)
    done, real = 0, translation.batch_loss

    def dying(*arguments: Any, **options: Any) -> tuple[Tensor, int]:
        nonlocal done
        if arguments[0].training:
            done += 1
            if done > 5:
                raise Killed
        return real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(translation, "batch_loss", dying)
        with pytest.raises(Killed):
            train(pairs, tmp_path, config)
    torch.manual_seed(99)  # another process has other random numbers
    resumed = train(pairs, tmp_path, config, resume=True)
    for name, tensor in uninterrupted.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], tensor), name
    losses = [[point["validation_loss"] for point in run.state.curve] for run in (resumed, uninterrupted)]
    assert losses[0] == losses[1]
    assert resumed.state.epoch == uninterrupted.state.epoch == 3
    assert resumed.state.updates == uninterrupted.state.updates > 3


def test_a_finished_run_trains_no_more_or_goes_further_and_a_kill_while_saving_leaves_its_file_whole(
    pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r"nothing to resume from: .*last.pt does not exist"):
        train(pairs, tmp_path, SHORT, resume=True)
    once = replace(CONFIG, epochs=1)
    first = train(pairs, tmp_path, once)
    again = train(pairs, tmp_path, once, resume=True)
    assert again.state.curve == first.state.curve
    assert torch.equal(again.model.encoder.embedding.weight, first.model.encoder.embedding.weight)
    before = (tmp_path / "last.pt").read_bytes()

    def half(content: object, path: Path) -> None:
        Path(path).write_bytes(b"half")
        if Path(path).name != "best.pt":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", half)
        with pytest.raises(Killed):
            train(pairs, tmp_path, replace(CONFIG, epochs=2, save_minutes=0.0), resume=True)
    assert (tmp_path / "last.pt").read_bytes() == before
    further = train(pairs, tmp_path, replace(CONFIG, epochs=2), resume=True)
    assert [point["epoch"] for point in further.state.curve] == [1, 2]
    assert further.state.curve[0] == first.state.curve[0]
    assert further.state.elapsed > first.state.elapsed


def test_the_clock_goes_on_follows_the_larger_budget_and_prints_every_five_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    limited = Clock(epochs=8, minutes=2, elapsed=30)
    assert [limited.progress(0), limited.progress(4)] == [0.25, 0.5]
    clock = Clock(epochs=4, minutes=None)
    for _ in range(12):
        now += 1
        clock.line(1.0, loss=2.5, per_second=6543.2)
    assert capsys.readouterr().out.splitlines() == [
        "epoch   1.00   25.0%  loss 2.500  6,543 tokens/s  0:00:15 left",
        "epoch   1.00   25.0%  loss 2.500  6,543 tokens/s  0:00:30 left",
    ]
    now += 48
    assert limited.elapsed == 90
    assert limited.progress(4) == 0.75
    now += 3633
    assert limited.progress(0) == 1
    assert [clock.progress(done) for done in (0, 1, 3.5, 4, 9)] == [0, 0.25, 0.875, 1, 1]
