"""The models of English that ship: one that writes, in Llama's format, and one that fills gaps, in BERT's."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from tokenizers import Tokenizer
from torch import Tensor, nn

from recipes.files import format_seconds, settings_table, write_json
from recipes.loop import (
    RunOptions,
    TrainingConfig,
    TrainingState,
    fast_pass,
    mean_over,
    run_epochs,
    seeded_generator,
    smoothed_cross_entropy,
)
from recipes.optimizer import Optimizers
from recipes.sentence_pairs import ARCHIVE_URL, LICENCE, SOURCE, Pair, load_pairs, split_pairs
from recipes.text_rows import (
    SPECIAL,
    Sentence,
    TextBatch,
    collate,
    encode,
    filled,
    hidden_words,
    hide_words,
    packaged,
    perplexity,
    plan_rows,
    train_tokenizer,
)
from viz_core.runtime.device import fast_precision

Loss = Callable[[Any, TextBatch, torch.Generator], tuple[Tensor, int]]
"""Summed loss of a batch, in nats, and its number of tokens to name."""


@dataclass(frozen=True)
class TextConfig(TrainingConfig):
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
class TextModelSpec:
    """Architecture and training configuration of a model of English."""

    title: str  # of its card
    description: str  # first words of its card
    build: Callable[[dict[str, Any]], nn.Module]
    architecture: dict[str, Any]  # its config without the size of the vocabulary
    loss: Loss
    # the modules whose output is added to the residual stream: dropout comes after them, for which the formats of
    # models that write have no place
    added: Callable[[Any], Sequence[nn.Module]]
    # whether a text is closed by an end token, so that two texts in a row are told apart, not one that goes on
    ends: bool
    config: TextConfig = field(default_factory=TextConfig)


def train_text_model(
    spec: TextModelSpec, train: Sequence[str], validation: Sequence[str], config: TextConfig, run: RunOptions
) -> tuple[nn.Module, Tokenizer, TrainingState]:
    """Train a model on these sentences until its epochs or its minutes are used up.

    Writes last.pt, to resume from, and vocabulary.json into the folder of the run.
    """
    if not train or not validation:
        counts = f"{len(train)} and {len(validation)}"
        raise ValueError(f"expected sentences to train on and to validate with, got {counts}")
    run.begin(config.seed)
    tokenizer = _tokenizer(train, run.out / "vocabulary.json", config, run.resume)
    examples, held_out = encode(tokenizer, train), encode(tokenizer, validation)
    model = spec.build({"vocab_size": tokenizer.get_vocab_size(), **spec.architecture}).to(run.device)
    for module in spec.added(model):
        module.register_forward_hook(lambda own, _, output: F.dropout(output, config.dropout, own.training))
    optimizers = Optimizers(model, config.muon_lr, config.adam_lr, config.weight_decay)
    checkpoint, state = run.open(TrainingState, model=model, optimizers=optimizers)

    def plan(epoch: int) -> list[list[tuple[int, ...]]]:
        return plan_rows(examples, config.batch_tokens, config.seed + epoch, config.in_pairs)

    def loss_of(rows: list[tuple[int, ...]], _: float) -> tuple[Tensor, int]:
        batch = collate(examples, rows, spec.ends)
        total, count = spec.loss(model, batch.to(run.device), seeded_generator(config.seed, state.epoch, state.batch))
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
        validate=lambda: {"validation_loss": mean_loss(model, spec, held_out, config, run.device)},
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
    model: nn.Module, spec: TextModelSpec, sentences: Sequence[Sentence], config: TextConfig, device: torch.device
) -> float:
    """Nats a token that must be named, over held-out sentences; the same words are hidden every time."""
    model.eval()
    generator = seeded_generator(config.seed)
    batches = (collate(sentences, rows, spec.ends) for rows in plan_rows(sentences, config.batch_tokens))
    return mean_over(spec.loss(model, batch.to(device), generator) for batch in batches)


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


LIMIT = 128  # tokens that a text may have
_PLAIN = "eager"  # rows of ten tokens: fused attention takes twice as long on a CPU
_IDS = {"pad_token_id": SPECIAL["<pad>"], "bos_token_id": SPECIAL["<s>"], "eos_token_id": SPECIAL["</s>"]}


def writer(architecture: dict[str, Any]) -> nn.Module:
    """A causal decoder with rotary positions and grouped queries (transformers' LlamaForCausalLM)."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**architecture, **_IDS, attn_implementation=_PLAIN))


def reader(architecture: dict[str, Any]) -> nn.Module:
    """An encoder with learned positions (transformers' BertForMaskedLM)."""
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(**architecture, **_IDS, attn_implementation=_PLAIN))


TEXT_MODELS = {
    "writer-en": TextModelSpec(
        "Writer, English",
        "a decoder with rotary positions and grouped queries in the format of Llama (Touvron et al. 2023)",
        writer,
        {
            "hidden_size": 128,
            "intermediate_size": 352,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": LIMIT,
            "tie_word_embeddings": True,
        },
        writing_loss,
        lambda model: [
            model.model.embed_tokens,
            *(part for layer in model.model.layers for part in (layer.self_attn.o_proj, layer.mlp.down_proj)),
        ],
        ends=False,
    ),
    "reader-en": TextModelSpec(
        "Reader, English",
        "a masked encoder with learned positions in the format of BERT (Devlin et al. 2019), whole words hidden",
        reader,
        {
            "hidden_size": 128,
            "intermediate_size": 512,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "max_position_embeddings": LIMIT,
            "type_vocab_size": 2,
            "hidden_dropout_prob": 0.0,  # the loop's takes its place
            "attention_probs_dropout_prob": 0.0,
        },
        filling_loss,
        lambda model: [
            model.bert.embeddings,
            *(
                part
                for layer in model.bert.encoder.layer
                for part in (layer.attention.output.dense, layer.output.dense)
            ),
        ],
        ends=True,
    ),
}


def train(name: str, data: Path, run: RunOptions, epochs: int | None) -> None:
    """Train one of TEXT_MODELS on the English of the sentence pairs, measure it and write its folder."""
    spec = TEXT_MODELS[name]
    config = spec.config if epochs is None else replace(spec.config, epochs=epochs)
    parts = [english(part) for part in split_pairs(load_pairs(data))]
    model, tokenizer, state = train_text_model(spec, parts[0], parts[1], config, run)
    export_text_model(name, spec, model, tokenizer, parts, state.record(config, run.device), run)


def english(pairs: Sequence[Pair]) -> list[str]:
    """Each English sentence once, however many translations it has."""
    return list(dict.fromkeys(pair.english for pair in pairs))


def export_text_model(
    name: str,
    spec: TextModelSpec,
    model: Any,
    tokenizer: Tokenizer,
    parts: Sequence[Sequence[str]],
    training: dict[str, Any],
    run: RunOptions,
) -> None:
    """Round to float16, score what ships on the test sentences, and write the folder that `load_hub` opens.

    Args:
        parts: the sentences to train on, to validate with and to test with.
        training: what training.json has of every model; the scores are added.
    """
    out, device = run.out, run.device
    model.half().save_pretrained(out)
    model.float()
    packaged(tokenizer, spec.ends, model.config.max_position_embeddings).save_pretrained(out)
    test = encode(tokenizer, parts[2])
    if spec.ends:
        words = hidden_words(tokenizer, test)
        scores = {"words": len(words), "words_filled": round(filled(model, test, words, device), 2)}
    else:
        scores = {"perplexity": round(perplexity(model, test, device), 2)}
    training = {"scores": scores, **training}
    write_json(out / "training.json", training)
    card = _card(name, spec, sum(p.numel() for p in model.parameters()), training, [*map(len, parts)])
    (out / "README.md").write_text(card, encoding="utf-8")
    print(json.dumps(scores), flush=True)


def _card(name: str, spec: TextModelSpec, num_parameters: int, training: dict[str, Any], counts: Sequence[int]) -> str:
    """The README.md of a model of English, from what its export wrote into training.json."""
    curve, config = training["curve"], training["recipe"]
    train, validation, test = counts
    return f"""---
license: cc-by-2.0
language: en
---

# {spec.title}

`{name}`: {spec.description},
{num_parameters:,} parameters, one matrix shared by the embedding and the output layer. Weights in float16.
Its vocabulary is of {config["vocabulary_size"]:,} byte-level pieces, so that no text holds anything unknown.

## Scores

{_score(training["scores"], test)}
## Data

The English side of {SOURCE}; {ARCHIVE_URL}. Licence: {LICENCE}.
Cleaned by NFKC with plain spaces and straight apostrophes, each sentence once, split by its SHA-256 hash as for
the translators: {train:,} sentences to train on, {validation:,} to validate, {test:,} to test.
The vocabulary was learned from the training sentences alone.

## Training

{curve[-1]["epoch"]:.2f} epochs of the {config["epochs"]} planned, {training["updates"]:,} updates by Muon for
matrices and AdamW for the rest, in {format_seconds(training["seconds"])} on {training["device"]};
last validation loss {curve[-1]["validation_loss"]:.3f} nats a token.
{100 * config["in_pairs"]:.0f} of 100 rows hold two sentences.

| setting | value |
| --- | --- |
{settings_table(spec.architecture, config)}

## Limits

Short everyday sentences, as learners collect them: most have fewer than a dozen words, and longer texts than
{spec.architecture["max_position_embeddings"]} tokens are refused. It knows English a little and the world not at all.
"""


def _score(scores: dict[str, float], sentences: int) -> str:
    """Return the card's sentence on how well it does."""
    if "perplexity" in scores:
        return f"""On the {sentences:,} English sentences of the test split, each by itself, per token with the
end of the sentence, with the float16 weights: perplexity {scores["perplexity"]:.2f}.
"""
    return f"""Of the {scores["words"]:,} words of the {sentences:,} English sentences of the test split, each
hidden alone and whole, it names {scores["words_filled"]:.1f}% with the float16 weights, every piece of the word.
"""
