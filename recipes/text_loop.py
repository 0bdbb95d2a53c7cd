"""Train a model of English sentences: one loop for the one that writes and the one that fills gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from tokenizers import Tokenizer
from torch import Tensor, nn

from recipes import loop
from recipes.loop import RunOptions, TrainingState, mean_over, run_epochs, seeded_generator
from recipes.loss import fast_pass, smoothed_cross_entropy
from recipes.optimizer import Optimizers
from recipes.text_rows import SPECIAL, Sentence, TextBatch, collate, encode, hide_words, plan_rows, train_tokenizer
from viz_core.runtime.device import fast_precision

Loss = Callable[[Any, TextBatch, torch.Generator], tuple[Tensor, int]]
"""Summed loss of a batch, in nats, and its number of tokens to name."""


@dataclass(frozen=True)
class TextConfig(loop.TrainingConfig):
    """How a model of text is trained."""

    epochs: int = 8
    muon_lr: float | None = 6e-3
    adam_lr: float = 3e-3
    label_smoothing: float = 0.0
    vocabulary_size: int = 4096
    batch_tokens: int = 2048  # padding included
    dropout: float = 0.05  # of what each block adds, while training
    in_pairs: float = 0.15  # share of rows that hold two sentences


@dataclass(frozen=True)
class Texts:
    """Sentences to train on and to draw the curve with."""

    train: Sequence[str]
    validation: Sequence[str]


def train_text_model(
    build: Callable[[int], nn.Module],
    loss: Loss,
    added: Callable[[Any], Sequence[nn.Module]],
    texts: Texts,
    config: TextConfig,
    run: RunOptions,
    *,
    stop_between: bool,
) -> tuple[nn.Module, Tokenizer, TrainingState]:
    """Train the model that `build(vocabulary size)` makes, until its epochs or its minutes are spent.

    Writes last.pt, to resume from, and vocabulary.json into the folder of the run.

    Args:
        added: the modules whose output is added to the residual stream: dropout comes after them, for which the
            formats of models that write have no place.
        stop_between: whether two sentences in a row are two, or one text that goes on.

    Raises:
        ValueError: if there is nothing to resume from, or no sentence to train on or to validate with.
    """
    if not texts.train or not texts.validation:
        counts = f"{len(texts.train)} and {len(texts.validation)}"
        raise ValueError(f"expected sentences to train on and to validate with, got {counts}")
    run.begin(config.seed)
    tokenizer = _tokenizer(texts.train, run.out / "vocabulary.json", config, run.resume)
    train, held_out = encode(tokenizer, texts.train), encode(tokenizer, texts.validation)
    model = build(tokenizer.get_vocab_size()).to(run.device)
    for module in added(model):
        module.register_forward_hook(lambda own, _, output: F.dropout(output, config.dropout, own.training))
    optimizers = Optimizers(model, config.muon_lr, config.adam_lr, config.weight_decay)
    checkpoint, state = run.open(TrainingState, model=model, optimizers=optimizers)

    def plan(epoch: int) -> list[list[tuple[int, ...]]]:
        return plan_rows(train, config.batch_tokens, config.seed + epoch, config.in_pairs)

    def loss_of(rows: list[tuple[int, ...]], _: float) -> tuple[Tensor, int]:
        batch = collate(train, rows, stop_between)
        total, count = loss(model, batch.to(run.device), seeded_generator(config.seed, state.epoch, state.batch))
        return total / count, int((batch.ids != SPECIAL["<pad>"]).sum())

    run_epochs(
        model,
        optimizers,
        state,
        config,
        checkpoint,
        minutes=run.minutes,
        plan=plan,
        loss_of=loss_of,
        validate=lambda: {"validation_loss": mean_loss(model, loss, held_out, config, run.device, stop_between)},
        unit="tokens",
    )
    return model.eval(), tokenizer, state


def writing_loss(model: Any, batch: TextBatch, _: torch.Generator) -> tuple[Tensor, int]:
    """-sum log p(w_t | w_<t) over the tokens of a batch, of a model in Llama's format."""
    wanted = batch.ids[:, 1:]
    real = wanted != SPECIAL["<pad>"]
    with fast_pass(batch.ids.device):
        hidden = model.model(input_ids=batch.ids[:, :-1], use_cache=False).last_hidden_state
    weight = model.lm_head.weight
    return _nats(hidden[real], weight, weight.new_zeros(len(weight)), wanted[real])


def filling_loss(model: Any, batch: TextBatch, generator: torch.Generator) -> tuple[Tensor, int]:
    """-sum log p(w_t | what is left) over the hidden tokens of a batch, of a model in BERT's format."""
    head = model.cls.predictions
    given, hidden_at = hide_words(batch.to(torch.device("cpu")), len(head.bias), generator)
    device = batch.ids.device
    given, hidden_at = given.to(device), hidden_at.to(device)
    with fast_pass(device):
        seen = (batch.ids != SPECIAL["<pad>"]).long()
        hidden = model.bert(input_ids=given, attention_mask=seen, token_type_ids=batch.segments).last_hidden_state
        hidden = head.transform(hidden[hidden_at])
    return _nats(hidden, head.decoder.weight, head.bias, batch.ids[hidden_at])


@torch.no_grad()
def mean_loss(
    model: nn.Module,
    loss: Loss,
    sentences: Sequence[Sentence],
    config: TextConfig,
    device: torch.device,
    stop_between: bool,
) -> float:
    """Nats a token that must be named, over held-out sentences; the same words are hidden every time."""
    model.eval()
    generator = seeded_generator(config.seed)
    batches = (collate(sentences, rows, stop_between) for rows in plan_rows(sentences, config.batch_tokens))
    return mean_over(loss(model, batch.to(device), generator) for batch in batches)


def _nats(
    hidden: Float[Tensor, "tokens d"], weight: Tensor, bias: Tensor, wanted: Int[Tensor, " tokens"]
) -> tuple[Tensor, int]:
    precision = fast_precision(hidden.device)
    return smoothed_cross_entropy(hidden.to(precision), weight, bias, wanted, 0.0), max(1, len(wanted))


def _tokenizer(texts: Sequence[str], path: Path, config: TextConfig, resume: bool) -> Tokenizer:
    if resume and path.exists():
        return Tokenizer.from_file(str(path))
    tokenizer = train_tokenizer(texts, config.vocabulary_size)
    tokenizer.save(str(path))
    return tokenizer


@dataclass(frozen=True)
class TextModelSpec:
    """Architecture and training configuration of a model of English.

    Attributes:
        title: of its card.
        description: first words of its card.
        architecture: its config without the size of the vocabulary.
        added: the modules whose output joins the residual stream.
        ends: whether a text is closed by an end token, so that two texts are told apart.
    """

    title: str
    description: str
    build: Callable[[dict[str, Any]], nn.Module]
    architecture: dict[str, Any]
    loss: Loss
    added: Callable[[Any], Sequence[nn.Module]]
    ends: bool
    config: TextConfig = field(default_factory=TextConfig)
