"""The book's exercises on a loaded model: what a place sees, which sentence is likelier, what a state tells."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.hub import HubModel
from viz_core.hub.kinds.base import TextKind
from viz_core.hub.kinds.decoder import DecoderKind
from viz_core.pretrained.samples import held_out
from viz_core.runtime.assets import ASSETS, reading
from viz_core.trace.weights import causal_mask

TEXTS = "We are going to the library.", "We are going to the station."
"""Two sentences that differ in one word, which is one token to each model here."""


def leak(model: HubModel, texts: tuple[str, str] = TEXTS) -> float:
    """max |y - y'| over the places before the first token in which two texts differ; 0 where no place sees ahead.

    Of an encoder, y are its states; of a decoder, its logits. An encoder-decoder reads the whole text and writes it.
    """
    if model.engine.stack is None:
        runs = [model.run(text, target=texts[0]) for text in texts]
    elif model.engine.writes():
        runs = [model.run(text, max_new_tokens=0) for text in texts]
    else:
        runs = [model.run(text) for text in texts]
    ids = [[token.id for token in run.tokens] for run in runs]
    shared = next((i for i, pair in enumerate(zip(*ids, strict=False)) if pair[0] != pair[1]), 0)
    return float((runs[0].output[:shared] - runs[1].output[:shared]).abs().max())


def perplexity(model: HubModel, text: str) -> tuple[float, int]:
    """Perplexity exp(-mean log p) of a text's tokens after the first, and their number.

    (Dive into Deep Learning, section 9.3; one pass of a causal decoder gives all of them.)
    """
    if not isinstance(model.engine, DecoderKind):
        raise ValueError(f"model: expected a decoder, got an {model.card.kind}")
    run = model.run(text, max_new_tokens=0)
    later = [token.id for token in run.tokens[1:]]
    chances = run.output.log_softmax(dim=-1)[range(len(later)), later]
    return math.exp(-float(chances.mean())), len(later)


Seen = Bool[Tensor, "tokens tokens"]


def with_encoder(source: int, target: int) -> Seen:
    """Mask of encoder and decoder: the source attends to the source, the target to it and to earlier targets.

    Each row is a query, the source's first. (Raffel 2020, figure 4: a prefix language model has this map in one stack.)
    """
    seen = one_stack(source, target)
    seen[:source, :source] = True
    return seen


def one_stack(source: int, target: int) -> Seen:
    """Mask of a decoder alone: no token attends to a later one."""
    return causal_mask(source + target, source + target)


_PAIRS = ASSETS / "samples" / "sentence-pairs.json"
Pairs = Mapping[str, Sequence[tuple[str, str]]]


@cache
def sentence_pairs() -> Pairs:
    """Sentences written for this page, by what is wrong with the second of each pair."""
    with reading(_PAIRS):
        content: dict[str, list[list[str]]] = json.loads(_PAIRS.read_text(encoding="utf-8"))
        return {name: tuple((right, wrong) for right, wrong in pairs) for name, pairs in content.items()}


def right_choices(model: HubModel, pairs: Pairs | None = None) -> dict[str, tuple[bool, ...]]:
    """Whether the first of each pair is the likelier one; of `sentence_pairs` unless given."""
    pairs = sentence_pairs() if pairs is None else pairs
    texts = [text for group in pairs.values() for pair in group for text in pair]
    found = iter(log_probabilities(model, texts).tolist())
    return {name: tuple(next(found) > next(found) for _ in group) for name, group in pairs.items()}


@torch.inference_mode()
def log_probabilities(model: HubModel, texts: Sequence[str]) -> Float[Tensor, " texts"]:
    """log p(text) = sum_t log p(x_t | x_1 ... x_(t-1)) by a decoder, of all texts in one pass.

    What pads the shorter ones stands after them, where a causal model does not look.
    """
    if not isinstance(model.engine, DecoderKind):
        raise ValueError(f"model: expected a decoder, got an {model.card.kind}")
    rows = [model.engine.encode(text)["input_ids"][0] for text in texts]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    with model.engine.serial:
        chances = model.engine.model(input_ids=ids).logits.float().log_softmax(dim=-1)
    each = chances[:, :-1].gather(-1, ids[:, 1:, None])[..., 0].cpu()
    predicted = torch.arange(each.shape[1]) < torch.tensor([len(row) - 1 for row in rows])[:, None]
    return each.where(predicted, 0).sum(dim=1)


_FOLDS = 5
_RIDGE = 10.0


def questions_and_statements() -> tuple[tuple[str, ...], Bool[Tensor, " texts"]]:
    """As many of each of the held-out sentences that ship, without the mark at their end; and which are questions."""
    texts = [sample.english for sample in held_out()]
    questions = [text for text in texts if text.endswith("?")]
    statements = [text for text in texts if not text.endswith("?")][: len(questions)]
    labels = torch.tensor([True, False]).repeat_interleave(len(questions))[: len(questions) + len(statements)]
    return tuple(text.rstrip("?!.") for text in (*questions, *statements)), labels


@torch.inference_mode()
def token_states(
    model: HubModel, texts: Sequence[str]
) -> tuple[Float[Tensor, "layers texts tokens d"], Int[Tensor, " texts"]]:
    """States of every token, first as they enter the first block, then after each block; and the texts' lengths."""
    if not isinstance(model.engine, TextKind):
        raise ValueError(f"model: expected one that reads texts, got an {model.card.kind}")
    rows = [model.engine.encode(text)["input_ids"][0] for text in texts]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lens = torch.tensor([len(row) for row in rows], device=ids.device)
    seen = (torch.arange(ids.shape[1], device=ids.device) < lens[:, None]).long()
    with model.engine.serial:
        found = model.engine.model(input_ids=ids, attention_mask=seen, output_hidden_states=True)
    return torch.stack(found.hidden_states).float().cpu(), lens.cpu()


def read_at(model: HubModel, place: str) -> tuple[float, ...]:
    """Accuracy of a linear probe for questions against statements, at each depth of the model.

    Args:
        place: "first" or "last" token of the sentence as the model reads it.
    """
    texts, labels = questions_and_statements()
    states, lens = token_states(model, texts)
    at = lens - 1 if place == "last" else torch.zeros_like(lens)
    return tuple(linear_accuracy(layer[torch.arange(len(texts)), at], labels) for layer in states)


def linear_accuracy(states: Float[Tensor, "texts d"], labels: Bool[Tensor, " texts"]) -> float:
    """Cross-validated accuracy of ridge regression on labels +1 and -1.

    Fitted on four fifths and tested on the rest, five times over; in every fifth each label is there as often, as far
    as numbers allow, so that a state which knows nothing comes out at one half.
    """
    fold = torch.empty(len(labels), dtype=torch.long)
    for label in (True, False):
        fold[labels == label] = torch.arange(int((labels == label).sum())) % _FOLDS
    y = labels.double() * 2 - 1
    right = torch.zeros(len(labels), dtype=torch.bool)
    for tested in range(_FOLDS):
        train, test = fold != tested, fold == tested
        X = states.double()
        X = (X - X[train].mean(dim=0)) / X[train].std().clamp_min(1e-9)
        gram = X[train].T @ X[train] + _RIDGE * torch.eye(X.shape[1], dtype=X.dtype)
        scores = X[test] @ torch.linalg.solve(gram, X[train].T @ y[train])
        right[test] = (scores > 0) == labels[test]
    return float(right.double().mean())
