"""Export a trained model of English: a folder in Hugging Face's layout, with scores, curves and a card."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from recipes.files import format_seconds, settings_table, write_json
from recipes.loop import TrainingState
from recipes.sentence_pairs import ARCHIVE_URL, LICENCE, SOURCE
from recipes.text_loop import TextConfig, TextModelSpec
from recipes.text_rows import SPECIAL, Sentence, collate, encode, packaged, plan_rows
from viz_core.runtime.device import describe_device

_TOKENS = 4096  # of a batch


class HiddenWord(NamedTuple):
    """A word of a sentence, to be named by who does not see it."""

    sentence: int
    places: tuple[int, ...]  # of its tokens


@torch.inference_mode()
def perplexity(model: Any, sentences: Sequence[Sentence], device: torch.device) -> float:
    """exp(-1/m sum_t ln p(w_t | w_<t)) over the m tokens of the sentences, their ends included, in float32."""
    nats = 0.0
    for rows in plan_rows(sentences, _TOKENS):
        ids = collate(sentences, rows, stop_between=False).ids.to(device)
        logits = model(input_ids=ids[:, :-1]).logits.float()
        nats += float(F.cross_entropy(logits.mT, ids[:, 1:], ignore_index=SPECIAL["<pad>"], reduction="sum"))
    return math.exp(nats / _num_named(sentences))


def hidden_words(tokenizer: Tokenizer, sentences: Sequence[Sentence]) -> list[HiddenWord]:
    """Every word with a letter in it; marks and numbers are not words to be guessed."""
    found = []
    for number, sentence in enumerate(sentences):
        for word in dict.fromkeys(sentence.words):
            places = tuple(i for i, own in enumerate(sentence.words) if own == word)
            if any(c.isalpha() for c in tokenizer.decode([sentence.ids[i] for i in places])):
                found.append(HiddenWord(number, places))
    return found


@torch.inference_mode()
def filled(model: Any, sentences: Sequence[Sentence], words: Sequence[HiddenWord], device: torch.device) -> float:
    """Percent of words of which a masked encoder names every token, each word hidden alone and whole."""
    hidden = [
        sentences[s]._replace(ids=[SPECIAL["<mask>"] if i in places else t for i, t in enumerate(sentences[s].ids)])
        for s, places in words
    ]
    right = 0
    for rows in plan_rows(hidden, _TOKENS):
        batch = collate(hidden, rows, stop_between=True)
        inputs = {"input_ids": batch.ids, "attention_mask": batch.ids.ne(SPECIAL["<pad>"]).long()}
        best = model(**{name: tensor.to(device) for name, tensor in inputs.items()}).logits.argmax(dim=-1)
        for (number,), predicted in zip(rows, best.tolist(), strict=True):
            sentence, places = words[number]
            right += all(predicted[1 + i] == sentences[sentence].ids[i] for i in places)
    return 100 * right / len(words)


def _num_named(sentences: Sequence[Sentence]) -> int:
    return sum(len(each.ids) + 1 for each in sentences)


def export_text_model(
    name: str,
    spec: TextModelSpec,
    model: Any,
    tokenizer: Tokenizer,
    parts: Sequence[Sequence[str]],
    state: TrainingState,
    config: TextConfig,
    out: Path,
    device: torch.device,
) -> dict[str, float]:
    """Round to float16, score what ships on the test sentences, and write the folder that `load_hub` opens.

    Args:
        parts: the sentences to train on, to validate with and to test with.

    Returns:
        The scores: of a model that writes its perplexity, else the percentage of hidden words named; and the 5-gram's.
    """
    model.half().save_pretrained(out)
    model.float()
    packaged(tokenizer, spec.ends, model.config.max_position_embeddings).save_pretrained(out)
    test = encode(tokenizer, parts[2])
    if spec.ends:
        scores = _words_filled(model, tokenizer, test, device)
    else:
        scores = {"perplexity": round(perplexity(model, test, device), 2)}
    training = {
        "scores": scores,
        "curve": state.curve,
        "updates": state.updates,
        "seconds": round(state.elapsed),
        "device": describe_device(device),
        "recipe": asdict(config),
    }
    write_json(out / "training.json", training)
    card = text_model_card(name, spec, sum(p.numel() for p in model.parameters()), training, [*map(len, parts)])
    (out / "README.md").write_text(card, encoding="utf-8")
    print(json.dumps(scores), flush=True)
    return scores


def text_model_card(
    name: str, spec: TextModelSpec, num_parameters: int, training: dict[str, Any], counts: Sequence[int]
) -> str:
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


def _words_filled(model: Any, tokenizer: Tokenizer, test: Sequence[Sentence], device: torch.device) -> dict[str, float]:
    words = hidden_words(tokenizer, test)
    return {"words": len(words), "words_filled": round(filled(model, test, words, device), 2)}


def _score(scores: dict[str, float], sentences: int) -> str:
    """Return the card's sentence on how well it does."""
    if "perplexity" in scores:
        return f"""On the {sentences:,} English sentences of the test split, each by itself, per token with the
end of the sentence, with the float16 weights: perplexity {scores["perplexity"]:.2f}.
"""
    return f"""Of the {scores["words"]:,} words of the {sentences:,} English sentences of the test split, each
hidden alone and whole, it names {scores["words_filled"]:.1f}% with the float16 weights, every piece of the word.
"""
