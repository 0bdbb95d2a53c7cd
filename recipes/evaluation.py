"""A model's translations of many sentences, and their BLEU by length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from tokenizers import Tokenizer

from recipes.batches import Example, collate
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.tokenization import special_tokens

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
