"""Linear probes on the state of one token of a pretrained model, layer by layer."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.hub import HubModel
from viz_core.hub.kinds.text import TextKind
from viz_core.pretrained.samples import held_out

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
