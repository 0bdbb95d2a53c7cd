"""The training loop really learns, can be killed and resumed, stops early, and keeps its best."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from viz_core.models import EncoderDecoder
from viz_core.pretrained import ModelCard, Translator, build_translation_model
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.decoding import beam_search, greedy_search
from viz_core.training import translation as loop
from viz_core.training.batches import Example, collate, encode_pairs
from viz_core.training.evaluation import translate_all
from viz_core.training.sentence_pairs import Pair, Split
from viz_core.training.translation import Recipe, State, batch_loss, mean_loss, train_translation

CPU = torch.device("cpu")
RECIPE = Recipe(
    vocab_size=300,
    epochs=45,
    batch_tokens=256,
    muon_lr=1e-2,
    adam_lr=5e-3,
    warm_up=0.1,
    decay_from=0.5,
    label_smoothing=0.05,
    curve_sentences=2,
    patience=1000,
)
SHORT = replace(RECIPE, epochs=3)


@pytest.fixture(autouse=True)
def memory_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """How this process manages memory is not for a test to change."""
    monkeypatch.setattr(loop, "keep_freed_memory", lambda: None)


def build(vocab_size: int) -> EncoderDecoder:
    sizes = {
        "architecture": "transformer",
        "num_hiddens": 48,
        "ffn_num_hiddens": 96,
        "num_heads": 4,
        "num_blks": 2,
        "dropout": 0.0,
    }
    return build_translation_model({"vocab_size": vocab_size, **sizes})


class Trained(NamedTuple):
    model: EncoderDecoder
    tokenizer: Tokenizer
    state: State
    out: Path


def train(pairs: list[Pair], out: Path, recipe: Recipe, minutes: float | None = None, resume: bool = False) -> Trained:
    split = Split(pairs, pairs, [])
    return Trained(*train_translation(build, split, out, recipe, CPU, minutes, resume), out)


# Learning


@pytest.fixture(scope="module")
def overfitted(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "keep_freed_memory", lambda: None)
        yield train(pairs, tmp_path_factory.mktemp("overfitted"), RECIPE)


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


# Copying what it does not know


def test_a_vocabulary_of_bytes_and_varied_pairs_from_the_same_loop(
    pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each epoch sees other numbers beside the pairs as they are; what was never seen is spelled."""
    seen: list[list[str]] = []

    def watched(tokenizer: Tokenizer, chosen: Sequence[Pair], most: int) -> list[Example]:
        seen.append([pair.english for pair in chosen])
        return encode_pairs(tokenizer, chosen, most)

    monkeypatch.setattr(loop, "encode_pairs", watched)
    run = train(pairs, tmp_path, replace(RECIPE, epochs=2, byte_fallback=True, vary_pairs=True, vocab_size=200))
    _, _, first, second = seen  # to train on, to validate with, and more in each of two epochs
    assert first != second
    for more in (first, second):
        assert len([text for text in more if re.fullmatch(r"I bought \d+ apples\.", text)]) == 12
        assert len([text for text in more if re.fullmatch(r"I have \d+ brothers\.", text)]) == 2
        assert len(more) == 14
    assert run.tokenizer.encode("Zoé 47").tokens[-3:] == ["▁", "4", "7"]
    assert run.tokenizer.encode("\u732b").tokens == ["▁", "<0xE7>", "<0x8C>", "<0xAB>"]
    assert run.model.encoder.embedding.num_embeddings == run.tokenizer.get_vocab_size() > 400


def test_a_warm_start_begins_where_the_other_ended(overfitted: Trained, pairs: list[Pair], tmp_path: Path) -> None:
    known = Translator(
        ModelCard("known", "", "translation", {}, {}, "", "", {}), overfitted.model, overfitted.tokenizer, CPU
    )
    split = Split(pairs, pairs, [])
    recipe = replace(RECIPE, epochs=1, byte_fallback=True, muon_lr=1e-4, adam_lr=1e-4)
    warm = train_translation(build, split, tmp_path / "warm", recipe, CPU, start_from=known)[2]
    cold = train_translation(build, split, tmp_path / "cold", recipe, CPU)[2]
    assert warm.best_loss < 0.7 * cold.best_loss


# Kill and resume


@pytest.fixture(scope="module")
def uninterrupted(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "keep_freed_memory", lambda: None)
        yield train(pairs, tmp_path_factory.mktemp("uninterrupted"), SHORT)


class Killed(BaseException):
    """What no except clause of the loop catches."""


@pytest.mark.parametrize("after", [1, 3, 4, 6, 11])
def test_a_killed_run_ends_where_an_uninterrupted_one_does(
    after: int, uninterrupted: Trained, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saved after each batch, killed in the middle or between epochs: bit for bit the same weights."""
    recipe = replace(SHORT, save_minutes=0.0)
    done, real = 0, loop.batch_loss

    def dying(*arguments: Any, **options: Any) -> tuple[Tensor, int]:
        nonlocal done
        if arguments[0].training:
            done += 1
            if done > after:
                raise Killed
        return real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "batch_loss", dying)
        with pytest.raises(Killed):
            train(pairs, tmp_path, recipe)
    torch.manual_seed(99)  # another process has other random numbers
    resumed = train(pairs, tmp_path, recipe, resume=True)
    for name, tensor in uninterrupted.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], tensor), name
    assert [point["validation_loss"] for point in resumed.state.curve] == [
        point["validation_loss"] for point in uninterrupted.state.curve
    ]
    assert resumed.state.epoch == uninterrupted.state.epoch == 3
    assert resumed.state.updates == uninterrupted.state.updates > 3


def test_the_same_seed_gives_the_same_weights_and_another_does_not(
    uninterrupted: Trained, pairs: list[Pair], tmp_path: Path
) -> None:
    torch.manual_seed(99)  # whatever was drawn before
    again = train(pairs, tmp_path / "again", SHORT)
    other = train(pairs, tmp_path / "other", replace(SHORT, seed=1))
    weights = [run.model.state_dict()["decoder.blks.block0.ffn.dense1.weight"] for run in (uninterrupted, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_each_epoch_is_mixed_anew(pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[list[list[int]]] = []
    plan_batches = loop.plan_batches

    def watched(*arguments: Any, **options: Any) -> list[list[int]]:
        plans.append(plan_batches(*arguments, **options))
        return plans[-1]

    monkeypatch.setattr(loop, "plan_batches", watched)
    train(pairs, tmp_path, SHORT)
    assert len(plans) == 3
    assert plans[0] != plans[1] != plans[2] != plans[0]


def test_a_kill_while_saving_leaves_the_old_file_whole(
    pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(pairs, tmp_path, replace(RECIPE, epochs=1))
    before = (tmp_path / "last.pt").read_bytes()

    def half(content: object, path: Path) -> None:
        Path(path).write_bytes(b"half")
        if Path(path).name != "best.pt":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", half)
        with pytest.raises(Killed):
            train(pairs, tmp_path, replace(RECIPE, epochs=2, save_minutes=0.0), resume=True)
    assert (tmp_path / "last.pt").read_bytes() == before


def test_a_finished_run_resumed_trains_no_more(uninterrupted: Trained, pairs: list[Pair]) -> None:
    again = train(pairs, uninterrupted.out, SHORT, resume=True)
    assert again.state.curve == uninterrupted.state.curve
    assert not again.model.training
    assert torch.equal(again.model.encoder.embedding.weight, uninterrupted.model.encoder.embedding.weight)


def test_a_resumed_run_may_go_further(pairs: list[Pair], tmp_path: Path) -> None:
    first = train(pairs, tmp_path, replace(RECIPE, epochs=1))
    further = train(pairs, tmp_path, replace(RECIPE, epochs=2), resume=True)
    assert [point["epoch"] for point in further.state.curve] == [1, 2]
    assert further.state.curve[0] == first.state.curve[0]
    assert further.state.elapsed > first.state.elapsed


def test_there_must_be_something_to_resume(pairs: list[Pair], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nothing to resume from: .*last.pt does not exist"):
        train(pairs, tmp_path, SHORT, resume=True)


@pytest.mark.parametrize(("parts", "counts"), [(("", "v"), "0 and 2"), (("t", ""), "2 and 0")])
def test_there_must_be_pairs(parts: tuple[str, str], counts: str, tmp_path: Path) -> None:
    pairs = [Pair("Go.", "Va !"), Pair("Hi.", "Salut !")]
    split = Split(pairs if parts[0] else [], pairs if parts[1] else [], [])
    with pytest.raises(ValueError, match=f"expected sentence pairs to train on and to validate with, got {counts}"):
        train_translation(build, split, tmp_path, SHORT, CPU)
    assert list(tmp_path.iterdir()) == []


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
    run = train(pairs, tmp_path, replace(RECIPE, epochs=50, patience=2))
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
    run = train(pairs, tmp_path, replace(RECIPE, epochs=1000), minutes=1)
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
    run = train(pairs, tmp_path / "free", replace(RECIPE, epochs=1, clip_norm=1e9))
    examples = encode_pairs(run.tokenizer, pairs, 100)
    torch.manual_seed(RECIPE.seed)
    model = build(run.tokenizer.get_vocab_size())  # as it was before its first step
    plan = loop.plan_batches(examples, RECIPE.batch_tokens, seed=RECIPE.seed)[0]
    loss, count = batch_loss(model, collate([examples[i] for i in plan], 0), 0, RECIPE.label_smoothing)
    (loss / count).backward()
    assert norms[0] == pytest.approx(gradient_norm(model), rel=1e-3)

    norms.clear()
    train(pairs, tmp_path / "clipped", replace(RECIPE, epochs=1, clip_norm=0.01))
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
    run = train(pairs, tmp_path, replace(RECIPE, epochs=1))
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert printed == run.state.curve
    assert printed[0].keys() == {"epoch", "train_loss", "validation_loss", "validation_bleu"}
