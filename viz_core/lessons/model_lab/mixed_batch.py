"""Two tasks in one minibatch: whether its rows stay apart, and whether it teaches what each task teaches."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from viz_core.models import TransformerDecoder, TransformerEncoder
from viz_core.models.encoder_decoder import EncoderDecoder

TASKS = (("translate : he is calm", "il est calme ."), ("repeat : i lost all of my keys", "i lost all of my keys ."))
"""A row of each task: what is read, which names its task, and what is to be written."""

_WORDS = ("<pad>", "<bos>", *sorted({word for row in TASKS for text in row for word in text.split()}))
_SIZES: dict[str, Any] = {"num_hiddens": 16, "ffn_num_hiddens": 32, "num_heads": 2, "num_blks": 2, "dropout": 0.0}
_IGNORED = -100

Kind = Literal["encoder-decoder", "decoder"]


class Mixed(NamedTuple):
    """Effect of mixing two tasks in a minibatch."""

    apart: float  # max difference between a row's logits in the minibatch and those it has alone
    gradient: float  # |g - (g_1 + g_2)| / |g| of the gradients of the summed loss: mixed, and of each task alone


def mixed_batch(kind: Kind, seed: int = 0) -> Mixed:
    """A small model with random weights, in float64, on both tasks at once and on each alone.

    An encoder-decoder reads the source and writes the target, as T5 does (Raffel 2020, section 2.1); a decoder has
    both in one row, as GPT-2 does, and its loss counts the target alone.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _Both() if kind == "encoder-decoder" else _DecoderAlone()
    model = model.double().eval()
    both, alone = _learn(model, TASKS), [_learn(model, [row]) for row in TASKS]
    apart = [
        float((together[: len(single)] - single).abs().max())
        for together, (logits, _) in zip(both[0], alone, strict=True)
        for single in logits
    ]
    added = sum(gradient for _, gradient in alone)
    return Mixed(max(apart), float((both[1] - added).norm() / both[1].norm()))


class _Both(nn.Module):
    """Encoder and decoder, as T5 has them."""

    def __init__(self) -> None:
        super().__init__()
        encoder, decoder = TransformerEncoder(len(_WORDS), **_SIZES), TransformerDecoder(len(_WORDS), **_SIZES)
        self.model = EncoderDecoder(encoder, decoder)

    def forward(self, rows: Sequence[tuple[str, str]]) -> tuple[Tensor, Tensor]:
        """Logits and labels."""
        sources = [_ids(source) for source, _ in rows]
        targets = [_ids(f"<bos> {target}") for _, target in rows]
        lens = torch.tensor([len(source) for source in sources])
        target = pad_sequence(targets, batch_first=True)
        wanted = pad_sequence([ids[1:] for ids in targets], batch_first=True, padding_value=_IGNORED)
        return self.model(pad_sequence(sources, batch_first=True), target[:, :-1], lens), wanted


class _DecoderAlone(nn.Module):
    """A causal stack that reads source and target as one row, as GPT-2 does."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = TransformerEncoder(len(_WORDS), **_SIZES)
        self.dense = nn.Linear(_SIZES["num_hiddens"], len(_WORDS))

    def forward(self, rows: Sequence[tuple[str, str]]) -> tuple[Tensor, Tensor]:
        """Logits and labels, which begin with the target."""
        texts = [_ids(f"{source} <bos> {target}") for source, target in rows]
        wanted = [ids[1:].clone() for ids in texts]
        for numbers, (source, _) in zip(wanted, rows, strict=True):
            numbers[: len(source.split())] = _IGNORED
        states = self.stack(pad_sequence(texts, batch_first=True)[:, :-1], causal=True)
        return self.dense(states), pad_sequence(wanted, batch_first=True, padding_value=_IGNORED)


def _ids(text: str) -> Tensor:
    return torch.tensor([_WORDS.index(word) for word in text.split()])


def _learn(model: nn.Module, rows: Sequence[tuple[str, str]]) -> tuple[list[Tensor], Float[Tensor, " parameters"]]:
    """Each row's logits without padding, and the gradient of the loss summed over all labels."""
    logits, wanted = model(rows)
    loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=_IGNORED, reduction="sum")
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, materialize_grads=True)
    predicted = [row[labelled] for row, labelled in zip(logits.detach(), wanted != _IGNORED, strict=True)]
    return predicted, torch.cat([gradient.flatten() for gradient in gradients])
