"""Inputs of a single layer: a sentence as vectors of unit variance, and its words in another order."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.pretrained import Translator
from viz_core.pretrained.tokenization import clean


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens with their vectors, on a grid; a sentence is a grid one row high."""

    labels: tuple[str, ...]  # one for each token, in reading order
    X: Float[Tensor, "n d"]  # (n, d) vectors
    height: int
    width: int
    total: int  # how many there would be, had no limit cut them

    def one_word(self) -> "Tokens":
        """Return tokens that all equal the first one."""
        return replace(self, labels=self.labels[:1] * len(self.labels), X=self.X[:1].expand_as(self.X))


def sentence_tokens(
    text: str, max_tokens: int, num_hiddens: int, translator: Translator | None = None, *, ended: bool = False
) -> Tokens:
    """The tokens of a text, at most the first `max_tokens` of them.

    With a translator: its tokens and its embeddings, times sqrt(d) as in its encoder. Without one:
    the words, each with a random vector that depends on the word alone. `ended` adds the translator's end mark.
    """
    cleaned = clean(text)
    if translator is None:
        words = cleaned.split()
        labels = tuple(words[:max_tokens])
        X = torch.stack([_word_vector(word, num_hiddens) for word in labels]) if labels else torch.zeros(0, num_hiddens)
        return Tokens(labels, X, 1, len(labels), len(words))
    ids = translator.tokenizer.encode(cleaned).ids if cleaned else []
    selected = ids[:max_tokens]
    if ended and selected:
        selected.append(translator.special.eos)
    X = embed_ids(translator, selected)
    return Tokens(translator.readable_tokens(selected), X, 1, len(selected), len(ids))


def shuffled_order(tokens: Sequence[str], seed: int) -> Int[Tensor, " n"]:
    """A random order in which the tokens read differently.

    Raises:
        ValueError: if all tokens are the same, so that no order reads differently.
    """
    if len(set(tokens)) < 2:
        raise ValueError(f"tokens: expected at least two different ones, got {len(set(tokens))}")
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(tokens), generator=generator)
        if [tokens[i] for i in order.tolist()] != list(tokens):
            return order


@torch.inference_mode()
def embed_ids(translator: Translator, ids: list[int]) -> Float[Tensor, "n d"]:
    """The embeddings that the encoder of a Transformer adds positions to."""
    tokens = torch.tensor(ids, dtype=torch.long, device=translator.device)
    return translator.model.encoder.embed(tokens[None])[0].float().cpu()


def _word_vector(word: str, num_hiddens: int) -> Float[Tensor, " d"]:
    return torch.randn(num_hiddens, generator=torch.Generator().manual_seed(zlib.crc32(word.encode())))
