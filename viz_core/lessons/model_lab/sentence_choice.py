"""Choosing the likelier of two sentences with a language model."""

import json
from collections.abc import Mapping, Sequence
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.hub import HubModel
from viz_core.hub.kinds.decoder import DecoderKind
from viz_core.runtime.assets import ASSETS, reading

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
