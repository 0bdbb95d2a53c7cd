"""Choosing the likelier of two sentences with a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.hub import HubModel
from viz_core.hub.kinds.decoder import DecoderKind

PAIRS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "agreement": (
        ("She is at home.", "She are at home."),
        ("They are very tired.", "They is very tired."),
        ("He doesn't like fish.", "He don't likes fish."),
        ("I was born in Boston.", "I were born in Boston."),
        ("These books are mine.", "This books are mine."),
        ("Tom has two brothers.", "Tom has two brother."),
        ("We were waiting for you.", "We was waiting for you."),
        ("My parents live here.", "My parents lives here."),
    ),
    "order": (
        ("Where do you live?", "Where you do live?"),
        ("I have never seen it.", "I never have it seen."),
        ("He is not a doctor.", "He not is a doctor."),
        ("Give me the key.", "Give the me key."),
        ("What time is it?", "What it time is?"),
        ("I want to sleep.", "I to want sleep."),
        ("It is raining again.", "Raining it again is."),
        ("Can you help me?", "You help can me?"),
    ),
    "spelling": (
        ("I forgot my umbrella.", "I forgot my umbrela."),
        ("See you tomorrow.", "See you tommorow."),
        ("She is beautiful.", "She is beutiful."),
        ("I believe you.", "I beleive you."),
        ("We are friends.", "We are freinds."),
        ("It is necessary.", "It is neccesary."),
        ("I received a letter.", "I recieved a letter."),
        ("That is different.", "That is diffrent."),
    ),
    "sense": (
        ("I drink coffee every morning.", "I drink chairs every morning."),
        ("The dog is barking.", "The door is barking."),
        ("He drives a car.", "He drives a song."),
        ("She reads a book.", "She reads a fish."),
        ("The sun is shining.", "The spoon is shining."),
        ("I ate an apple.", "I ate an hour."),
        ("Birds can fly.", "Stones can fly."),
        ("He opened the window.", "He opened the water."),
    ),
    "world": (
        ("Paris is the capital of France.", "Paris is the capital of Japan."),
        ("The sky is blue.", "The sky is green."),
        ("A week has seven days.", "A week has nine days."),
        ("Ice is cold.", "Ice is hot."),
        ("Winter is cold.", "Winter is warm."),
        ("Two and two are four.", "Two and two are five."),
        ("The sun rises in the east.", "The sun rises in the west."),
        ("Cats eat mice.", "Mice eat cats."),
    ),
}
"""Sentences written for this page, by what is wrong with the second of each pair."""


def right_choices(
    model: HubModel, pairs: Mapping[str, Sequence[tuple[str, str]]] = PAIRS
) -> dict[str, tuple[bool, ...]]:
    """Whether the first of each pair is the likelier one."""
    texts = [text for group in pairs.values() for pair in group for text in pair]
    found = iter(log_probabilities(model, texts).tolist())
    return {name: tuple(next(found) > next(found) for _ in group) for name, group in pairs.items()}


@torch.inference_mode()
def log_probabilities(model: HubModel, texts: Sequence[str]) -> Float[Tensor, "texts"]:
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
