"""Train an encoder-decoder on sentence pairs: one loop for every translation model."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from recipes import loop
from recipes.copying import copying_cases, reserved
from recipes.loop import RunOptions, distilled_cross_entropy, fast_pass, mean_over, run_epochs, smoothed_cross_entropy
from recipes.optimizer import Optimizers
from recipes.pair_augmentation import Variations
from recipes.sentence_pairs import (
    Example,
    Pair,
    PairBatch,
    Split,
    collate,
    encode_pairs,
    group_references,
    plan_batches,
    train_tokenizer,
    translate_all,
)
from recipes.spread import alignment_penalty, clip_scores, guides_penalty, spread_penalty
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.decoding import beam_search, greedy_search
from viz_core.pretrained.tokenization import special_tokens
from viz_core.pretrained.translator import Translator
from viz_core.runtime.device import fast_precision
from viz_core.trace import Trace, record


@dataclass(frozen=True)
class TranslationConfig(loop.TrainingConfig):
    """How a translation model is trained."""

    vocab_size: int = 8000  # one BPE vocabulary for both languages
    byte_fallback: bool = False  # unknown letters become bytes, and each digit is one token wherever it stands
    vary_pairs: bool = False  # pairs with other numbers and names in them too, new ones in each epoch
    batch_tokens: int = 6144  # source and target tokens of a batch, padding included
    max_tokens: int = 100  # pairs with a longer side are not trained on
    curve_sentences: int = 500  # validation sentences translated after each epoch
    patience: int = 5  # epochs without a lower validation loss before training stops
    spread_penalty: float = 0.0  # nats a target token for heads that rest on one token (recipes.spread)
    guide_penalty: float = 0.0  # nats a target token for a guided head that leaves its place (recipes.spread)
    guides: Mapping[str, str] = field(default_factory=dict)  # by site, a sign for each head
    max_score_range: float | None = None  # how far scores of a query may lie apart (recipes.spread)
    teacher_share: float = 0.0  # of each target that is what the start's weights predict, not what was written
    align_penalty: float = 0.0  # nats a step for a head that leaves the word it writes (recipes.spread)
    aligned: tuple[str, int] | None = None  # site and head of it
    reader: tuple[str, int] | None = None  # of the head that it learns from
    rounded: bool = False  # whether matrices are held in 8 bits a number (recipes.optimizer)
    start: str | None = None  # a shipped translator whose weights training begins with
    beam_sentences: int = 0  # training sentences whose one target is what the start's beam search writes


@dataclass
class TranslationState(loop.TrainingState):
    """The same, and which weights were the best so far."""

    best_loss: float = float("inf")
    epochs_since_best: int = 0


def train_translation(
    build: Callable[[int], EncoderDecoder],
    split: Split,
    config: TranslationConfig,
    run: RunOptions,
    start: Translator | None = None,
) -> tuple[EncoderDecoder, Tokenizer, TranslationState]:
    """Train the model that `build(vocab_size)` makes, until its epochs, its minutes or its patience are spent.

    With `start`, training begins with its weights and its tokenizer. With a `teacher_share`, what the start predicts is
    that share of each target, in place of label smoothing. With `beam_sentences`, its beam search writes the targets of
    that many sentences.

    Writes last.pt (to resume from), best.pt (lowest validation loss) and tokenizer.json into the folder of the run.
    ValueError if there is nothing to resume from, no pair to train on or to validate with, no start to learn from, or
    only one of `aligned` and `reader`.

    Returns:
        The model with its best weights, the tokenizer, and the state with the learning curve.
    """
    if not split.train or not split.validation:
        counts = f"{len(split.train)} and {len(split.validation)}"
        raise ValueError(f"expected sentence pairs to train on and to validate with, got {counts}")
    if config.teacher_share and start is None:
        raise ValueError("teacher_share: expected a model to start from, whose predictions are learned, got none")
    if config.beam_sentences and start is None:
        raise ValueError("beam_sentences: expected a model to start from, whose translations are learned, got none")
    if (config.aligned is None) != (config.reader is None):
        raise ValueError(f"expected both heads or none, got aligned={config.aligned}, reader={config.reader}")
    run.begin(config.seed)
    path = run.out / "tokenizer.json"
    if start is not None and not run.resume:
        start.tokenizer.save(str(path))
    tokenizer = _tokenizer(split.train, path, config, run.resume or start is not None)
    pad = special_tokens(tokenizer).pad
    pairs = split.train
    if config.beam_sentences and start is not None:
        pairs = with_beams(pairs, start, config.beam_sentences, config.seed, run)
    examples = encode_pairs(tokenizer, pairs, config.max_tokens)
    held_out = encode_pairs(tokenizer, split.validation, config.max_tokens)
    model = build(tokenizer.get_vocab_size())
    if start is not None and not run.resume:
        model.load_state_dict(start.model.state_dict())
    model = model.to(run.device)
    variations = Variations.of(split.train, reserved(copying_cases(split))) if config.vary_pairs else None
    optimizers = Optimizers(model, config.muon_lr, config.adam_lr, config.weight_decay, rounded=config.rounded)
    checkpoint, state = run.open(TranslationState, model=model, optimizers=optimizers)

    teacher = start.model.to(run.device).eval() if start is not None and config.teacher_share else None
    seen: list[Trace] = []  # of the last batch

    def plan(epoch: int) -> list[list[Example]]:
        seed = config.seed + epoch
        more = encode_pairs(tokenizer, variations.epoch(seed), config.max_tokens) if variations else []
        every = [*examples, *more]
        return [[every[i] for i in rows] for rows in plan_batches(every, config.batch_tokens, seed=seed)]

    def loss_of(chosen: list[Example], _: float) -> tuple[Tensor, int]:
        batch = collate(chosen, pad).to(run.device)
        penalised = bool(config.spread_penalty or config.guides or config.aligned or config.max_score_range)
        with torch.no_grad():
            taught = None if teacher is None else log_predictions(teacher, batch, pad).exp()
        with record(differentiable=True) if penalised else nullcontext() as trace:
            if taught is None:
                loss, count = batch_loss(model, batch, pad, config.label_smoothing)
            else:
                log_p, count = log_predictions(model, batch, pad), len(taught)
                wanted = batch.target[:, 1:]
                loss = distilled_cross_entropy(log_p, taught, wanted[wanted != pad], config.teacher_share)
        loss = loss / count
        if trace is not None:
            seen.append(trace)
            tokens = batch.valid_lens, batch.target[:, :-1] != pad
            loss = loss + config.spread_penalty * spread_penalty(trace, *tokens)
            if config.guides:
                loss = loss + config.guide_penalty * guides_penalty(trace, *tokens, config.guides)
            if config.aligned is not None and config.reader is not None:
                loss = loss + config.align_penalty * alignment_penalty(trace, tokens[1], config.aligned, config.reader)
        return loss, sum(len(each.source) + len(each.target) - 1 for each in chosen)

    def after_step() -> None:
        if seen and config.max_score_range is not None:
            clip_scores(model, seen[-1], config.max_score_range)
        seen.clear()

    def validate() -> dict[str, float]:
        loss = mean_loss(model, held_out, config.batch_tokens, pad, run.device)
        state.epochs_since_best = 0 if loss < state.best_loss else state.epochs_since_best + 1
        if state.epochs_since_best == 0:
            state.best_loss = loss
            torch.save(model.state_dict(), run.out / "best.pt")
        bleu = _bleu(model, tokenizer, split.validation, config.curve_sentences, run.device)
        return {"validation_loss": loss, "validation_bleu": bleu}

    run_epochs(
        model,
        optimizers,
        state,
        config,
        checkpoint,
        minutes=run.minutes,
        plan=plan,
        loss_of=loss_of,
        validate=validate,
        unit="tokens",
        after_step=after_step,
        enough=lambda: state.epochs_since_best >= config.patience,
    )
    model.load_state_dict(torch.load(run.out / "best.pt", map_location=run.device, weights_only=True))
    model.eval()
    return model, tokenizer, state


def with_beams(pairs: Sequence[Pair], start: Translator, count: int, seed: int, run: RunOptions) -> list[Pair]:
    """Give `count` of the English sentences one translation in place of all their own: that of the start's beam search.

    What greedy search of the new weights writes comes closer to what beam search of the old ones wrote:
    Kim and Rush (2016, "Sequence-Level Knowledge Distillation"). Writes beams.json into the folder of the run, and
    reads it where it is there.
    """
    path = run.out / "beams.json"
    if not path.exists():
        sentences = list(dict.fromkeys(pair.english for pair in pairs))
        chosen = random.Random(seed).sample(sentences, min(count, len(sentences)))
        texts = translate_all(start.model, start.tokenizer, chosen, beam_search, run.device, rows=32)
        path.write_text(json.dumps(dict(zip(chosen, texts, strict=True)), ensure_ascii=False), encoding="utf-8")
    beams: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return [*(p for p in pairs if p.english not in beams), *(Pair(*item) for item in beams.items())]


def batch_loss(model: EncoderDecoder, batch: PairBatch, pad: int, smoothing: float) -> tuple[Tensor, int]:
    """Summed label-smoothed loss of a batch and its number of target tokens, in the device's fast precision."""
    with fast_pass(batch.source.device):
        hidden = model.hidden(batch.source, batch.target[:, :-1], batch.valid_lens)
    wanted = batch.target[:, 1:]
    real = wanted != pad
    dense = model.decoder.dense
    loss = smoothed_cross_entropy(
        hidden[real].to(fast_precision(hidden.device)), dense.weight, dense.bias, wanted[real], smoothing
    )
    return loss, int(real.sum())


def log_predictions(model: EncoderDecoder, batch: PairBatch, pad: int) -> Tensor:
    """log p(y_t | y_<t, x) of all words of the vocabulary at each target token, (tokens, vocabulary)."""
    real = batch.target[:, 1:] != pad
    with fast_pass(batch.source.device):
        hidden = model.hidden(batch.source, batch.target[:, :-1], batch.valid_lens)
        return model.decoder.dense(hidden[real]).float().log_softmax(dim=-1)


@torch.no_grad()
def mean_loss(model: EncoderDecoder, examples: Sequence[Example], tokens: int, pad: int, device: torch.device) -> float:
    """-1/m sum log p(y_t | y_<t, x) over all m target tokens: cross-entropy in nats, without label smoothing."""
    model.eval()
    batches = (collate([examples[i] for i in rows], pad) for rows in plan_batches(examples, tokens))
    return mean_over(batch_loss(model, batch.to(device), pad, smoothing=0.0) for batch in batches)


def _bleu(
    model: EncoderDecoder, tokenizer: Tokenizer, pairs: Sequence[Pair], count: int, device: torch.device
) -> float:
    """BLEU of greedy translations of about `count` of the sentences, with all references."""
    references = group_references(pairs)
    sentences = list(references)[:: max(1, len(references) // count)]
    texts = translate_all(model, tokenizer, sentences, greedy_search, device)
    return corpus_bleu(texts, [references[s] for s in sentences])


def _tokenizer(pairs: Sequence[Pair], path: Path, config: TranslationConfig, resume: bool) -> Tokenizer:
    if resume and path.exists():
        return Tokenizer.from_file(str(path))
    # An English sentence that comes with ten translations counts once.
    texts = [*dict.fromkeys(pair.english for pair in pairs), *dict.fromkeys(pair.french for pair in pairs)]
    tokenizer = train_tokenizer(texts, config.vocab_size, config.byte_fallback)
    tokenizer.save(str(path))
    return tokenizer
