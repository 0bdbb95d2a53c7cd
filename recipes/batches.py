"""Batches of sentence pairs with similar lengths, and a model's translations of many sentences with their BLEU."""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Int
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from recipes.sentence_pairs import Pair
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.tokenization import special_tokens


class Example(NamedTuple):
    """A sentence pair as token ids."""

    source: list[int]  # ... eos
    target: list[int]  # bos ... eos


class PairBatch(NamedTuple):
    """Examples padded to one length a side."""

    source: Int[Tensor, "batch keys"]
    valid_lens: Int[Tensor, " batch"]
    target: Int[Tensor, "batch steps"]  # bos y_1 ... y_m eos, padded

    def to(self, device: torch.device) -> "PairBatch":
        """Return the batch on another device."""
        return PairBatch(*(t.to(device, non_blocking=True) for t in self))


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[Pair], max_tokens: int) -> list[Example]:
    """Return token ids of each pair; pairs longer than max_tokens on a side are left out."""
    special = special_tokens(tokenizer)
    sources = tokenizer.encode_batch([pair.english for pair in pairs])
    targets = tokenizer.encode_batch([pair.french for pair in pairs])
    examples = [
        Example([*s.ids, special.eos], [special.bos, *t.ids, special.eos])
        for s, t in zip(sources, targets, strict=True)
    ]
    return [e for e in examples if max(len(e.source), len(e.target)) <= max_tokens]


def plan_batches(examples: Sequence[Example], tokens: int, seed: int | None = None) -> list[list[int]]:
    """Return the examples of each batch: neighbours by target length, then source length."""
    order = list(range(len(examples)))
    mix = random.Random(seed)
    if seed is not None:
        mix.shuffle(order)  # the sort below is stable: examples of equal lengths stay mixed
    order.sort(key=lambda i: (len(examples[i].target), len(examples[i].source)))
    plans: list[list[int]] = [[]]
    source = target = 0  # the longest of the batch so far: what its rows are padded to
    for i in order:
        source, target = max(source, len(examples[i].source)), max(target, len(examples[i].target))
        if plans[-1] and (source + target) * (len(plans[-1]) + 1) > tokens:
            plans.append([])
            source, target = len(examples[i].source), len(examples[i].target)
        plans[-1].append(i)
    if seed is not None:
        mix.shuffle(plans)
    return [plan for plan in plans if plan]


def collate(examples: Sequence[Example], pad: int) -> PairBatch:
    """Pad a few examples into one batch."""
    sources = [torch.tensor(e.source) for e in examples]
    targets = [torch.tensor(e.target) for e in examples]
    return PairBatch(
        pad_sequence(sources, batch_first=True, padding_value=pad),
        torch.tensor([len(s) for s in sources]),
        pad_sequence(targets, batch_first=True, padding_value=pad),
    )


Search = Callable[..., list[list[int]]]


def translate_all(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    sentences: Sequence[str],
    search: Search,
    device: torch.device,
    rows: int = 128,
) -> list[str]:
    """Translations in the order given; sentences of like length are decoded together."""
    special = special_tokens(tokenizer)
    encoded = [[*e.ids, special.eos] for e in tokenizer.encode_batch(list(sentences))]
    order = sorted(range(len(encoded)), key=lambda i: len(encoded[i]))
    texts = [""] * len(encoded)
    model.eval()
    for start in range(0, len(order), rows):
        picked = order[start : start + rows]
        batch = collate([Example(encoded[i], [special.bos]) for i in picked], special.pad).to(device)
        limit = 2 * batch.source.shape[1] + 10
        found = search(model, batch.source, batch.valid_lens, special, limit)
        for i, ids in zip(picked, found, strict=True):
            texts[i] = tokenizer.decode(ids)
    return texts


def bleu_by_length(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], lengths: Sequence[int], edges: Sequence[int]
) -> list[dict[str, float]]:
    """BLEU of the sentences whose source length falls in each bin [edge, next edge)."""
    bins = []
    for low, high in zip(edges, [*edges[1:], max(lengths) + 1], strict=True):
        rows = [i for i, n in enumerate(lengths) if low <= n < high]
        if rows:
            score = corpus_bleu([hypotheses[i] for i in rows], [references[i] for i in rows])
            bins.append({"from": low, "to": high - 1, "sentences": len(rows), "bleu": round(score, 2)})
    return bins
