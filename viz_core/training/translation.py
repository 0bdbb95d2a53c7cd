"""Train an encoder-decoder on sentence pairs: one loop for every translation model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.decoding import greedy_search
from viz_core.pretrained.tokenization import special_tokens, train_tokenizer
from viz_core.runtime.device import fast_precision
from viz_core.training.batches import Batch, Example, collate, encode_pairs, plan_batches, token_batches
from viz_core.training.evaluation import translate_all
from viz_core.training.files import load_progress, save_progress
from viz_core.training.loss import smoothed_cross_entropy
from viz_core.training.memory import keep_freed_memory
from viz_core.training.optimizer import Optimizers, learning_rate
from viz_core.training.progress import Clock
from viz_core.training.sentence_pairs import Pair, Split, group_references


@dataclass(frozen=True)
class Recipe:
    """How a translation model is trained."""

    vocab_size: int = 8000  # one BPE vocabulary for both languages
    epochs: int = 30  # passes over the training pairs, if the time allows
    batch_tokens: int = 6144  # source and target tokens of a batch, padding included
    max_tokens: int = 100  # pairs with a longer side are not trained on
    muon_lr: float | None = 4e-3  # peak rate of the matrices in blocks; None leaves them to Adam
    adam_lr: float = 2e-3  # peak rate of embeddings, norms, biases
    weight_decay: float = 0.01  # on the matrices
    warm_up: float = 0.02  # part of training in which the rate climbs
    decay_from: float = 0.3  # from here on it falls in a straight line to 0
    label_smoothing: float = 0.1
    clip_norm: float = 1.0  # largest norm of the whole gradient
    curve_sentences: int = 500  # validation sentences translated after each epoch
    patience: int = 5  # epochs without a lower validation loss before training stops
    save_minutes: float = 5.0  # how much work a kill may cost
    seed: int = 0


@dataclass
class State:
    """Where training stands: all that a resumed run needs beside weights and optimisers."""

    epoch: int = 0
    batch: int = 0  # batches of this epoch already done
    elapsed: float = 0.0
    best_loss: float = float("inf")
    epochs_since_best: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)


def train_translation(
    build: Callable[[int], EncoderDecoder],
    split: Split,
    out: Path,
    recipe: Recipe,
    device: torch.device,
    minutes: float | None = None,
    resume: bool = False,
) -> tuple[EncoderDecoder, Tokenizer, State]:
    """Train the model that `build(vocab_size)` makes, until its epochs, its minutes or its patience are spent.

    Writes last.pt (to resume from), best.pt (lowest validation loss) and tokenizer.json into `out`.

    Returns:
        The model with its best weights, the tokenizer, and the state with the learning curve.

    Raises:
        ValueError: if there is nothing to resume from, or no pair to train on or to validate with.
    """
    if not split.train or not split.validation:
        counts = f"{len(split.train)} and {len(split.validation)}"
        raise ValueError(f"expected sentence pairs to train on and to validate with, got {counts}")
    keep_freed_memory()
    torch.manual_seed(recipe.seed)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(split.train, out, recipe, resume)
    pad = special_tokens(tokenizer).pad
    examples = encode_pairs(tokenizer, split.train, recipe.max_tokens)
    held_out = encode_pairs(tokenizer, split.validation, recipe.max_tokens)
    model = build(tokenizer.get_vocab_size()).to(device)
    optimizers = Optimizers(model, recipe.muon_lr, recipe.adam_lr, recipe.weight_decay)
    state = _load(out / "last.pt", model, optimizers, device) if resume else State()
    clock = Clock(recipe.epochs, minutes, state.elapsed)
    saved_at = clock.elapsed

    while clock.progress(state.epoch) < 1 and state.epochs_since_best < recipe.patience:
        plans = plan_batches(examples, recipe.batch_tokens, seed=recipe.seed + state.epoch)
        losses, tokens, started = [], 0, clock.elapsed
        model.train()
        for plan in plans[state.batch :]:
            done = state.epoch + state.batch / len(plans)
            progress = clock.progress(done)
            if progress >= 1:
                break
            batch = collate([examples[i] for i in plan], pad).to(device)
            loss, count = batch_loss(model, batch, pad, recipe.label_smoothing)
            (loss / count).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
            optimizers.step(learning_rate(progress, recipe.warm_up, recipe.decay_from))
            state.batch += 1
            losses.append(loss.detach() / count)
            tokens += sum(len(examples[i].source) + len(examples[i].target) - 1 for i in plan)
            clock.line(done, float(losses[-1]), tokens / (clock.elapsed - started))
            if clock.elapsed - saved_at > 60 * recipe.save_minutes:
                saved_at = clock.elapsed
                _save(out / "last.pt", model, optimizers, state, clock)
        finished = state.epoch + state.batch / len(plans)
        state.epoch, state.batch = state.epoch + 1, 0
        train_loss = float(torch.stack(losses).mean()) if losses else float("nan")
        _validate(model, tokenizer, split.validation, held_out, state, recipe, device, finished, train_loss)
        if state.epochs_since_best == 0:
            torch.save(model.state_dict(), out / "best.pt")
        _save(out / "last.pt", model, optimizers, state, clock)

    state.elapsed = clock.elapsed
    model.load_state_dict(torch.load(out / "best.pt", map_location=device, weights_only=True))
    model.eval()
    return model, tokenizer, state


def batch_loss(model: EncoderDecoder, batch: Batch, pad: int, smoothing: float) -> tuple[Tensor, int]:
    """Summed label-smoothed loss of a batch and its number of target tokens, in the device's fast precision."""
    precision = fast_precision(batch.source.device)
    with torch.autocast(batch.source.device.type, torch.bfloat16, enabled=precision == torch.bfloat16):
        hidden = model.hidden(batch.source, batch.target[:, :-1], batch.valid_lens)
    wanted = batch.target[:, 1:]
    real = wanted != pad
    dense = model.decoder.dense
    loss = smoothed_cross_entropy(hidden[real].to(precision), dense.weight, dense.bias, wanted[real], smoothing)
    return loss, int(real.sum())


@torch.no_grad()
def mean_loss(model: EncoderDecoder, examples: Sequence[Example], tokens: int, pad: int, device: torch.device) -> float:
    """Cross-entropy a target token in nats, without label smoothing."""
    model.eval()
    total, count = 0.0, 0
    for batch in token_batches(examples, tokens, pad):
        loss, n = batch_loss(model, batch.to(device), pad, smoothing=0.0)
        total, count = total + float(loss), count + n
    return total / max(1, count)


def _validate(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    pairs: Sequence[Pair],
    examples: Sequence[Example],
    state: State,
    recipe: Recipe,
    device: torch.device,
    epochs_done: float,
    train_loss: float,
) -> None:
    """Add a point to the curve and note whether it is the best so far."""
    loss = mean_loss(model, examples, recipe.batch_tokens, special_tokens(tokenizer).pad, device)
    references = group_references(pairs)
    sentences = list(references)[:: max(1, len(references) // recipe.curve_sentences)]
    texts = translate_all(model, tokenizer, sentences, greedy_search, device)
    bleu = corpus_bleu(texts, [references[s] for s in sentences])
    point = {"epoch": epochs_done, "train_loss": train_loss, "validation_loss": loss, "validation_bleu": bleu}
    state.curve.append({name: round(value, 4) for name, value in point.items()})
    state.epochs_since_best = 0 if loss < state.best_loss else state.epochs_since_best + 1
    state.best_loss = min(loss, state.best_loss)
    print(json.dumps(state.curve[-1]), flush=True)


def _tokenizer(pairs: Sequence[Pair], out: Path, recipe: Recipe, resume: bool) -> Tokenizer:
    path = out / "tokenizer.json"
    if resume and path.exists():
        return Tokenizer.from_file(str(path))
    # An English sentence that comes with ten translations counts once.
    texts = [*dict.fromkeys(pair.english for pair in pairs), *dict.fromkeys(pair.french for pair in pairs)]
    tokenizer = train_tokenizer(texts, recipe.vocab_size)
    tokenizer.save(str(path))
    return tokenizer


def _save(path: Path, model: EncoderDecoder, optimizers: Optimizers, state: State, clock: Clock) -> None:
    state.elapsed = clock.elapsed
    content = {"model": model.state_dict(), "optimizers": optimizers.state_dict(), "state": asdict(state)}
    save_progress(path, content)


def _load(path: Path, model: EncoderDecoder, optimizers: Optimizers, device: torch.device) -> State:
    content = load_progress(path, device)
    model.load_state_dict(content["model"])
    optimizers.load_state_dict(content["optimizers"])
    return State(**content["state"])
