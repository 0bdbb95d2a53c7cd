"""A model that begins with the weights of another whose vocabulary was another."""

from __future__ import annotations

import torch
from jaxtyping import Float
from tokenizers import Tokenizer
from torch import Tensor

from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained.tokenization import UNK, token_id
from viz_core.pretrained.translator import Translator

_OF_THE_VOCABULARY = ("encoder.embedding.weight", "decoder.dense.bias")  # the embedding is the output layer's too


def rows_for(rows: Float[Tensor, " old *d"], old: Tokenizer, new: Tokenizer) -> Float[Tensor, " new *d"]:
    """A row for each token of a new vocabulary: its own where the old one has it, else the mean of its old pieces.

    A byte begins as the unknown token.

    Raises:
        ValueError: if there is not a row for each token of the old vocabulary.
    """
    if len(rows) != old.get_vocab_size():
        raise ValueError(f"rows: expected one for each of {old.get_vocab_size():,} tokens, got {len(rows):,}")
    unknown = token_id(old, UNK)
    found = []
    for token, _ in sorted(new.get_vocab().items(), key=lambda entry: entry[1]):
        own = old.token_to_id(token)
        if own is not None:
            found.append(rows[own])
        elif token.startswith("<0x"):
            found.append(rows[unknown])
        else:
            pieces = [piece.id for piece in old.model.tokenize(token)]
            found.append(rows[pieces or [unknown]].mean(dim=0))
    return torch.stack(found)


@torch.no_grad()
def warm_start(model: EncoderDecoder, tokenizer: Tokenizer, start: Translator) -> None:
    """Fill the model with the weights of a trained one, its embeddings and output layer by `rows_for`.

    Raises:
        ValueError: if the two differ in more than their vocabularies.
    """
    trained = dict(start.model.named_parameters())
    own = dict(model.named_parameters())
    if own.keys() != trained.keys():
        raise ValueError(f"start: expected a model of the same kind, got {start.card.name!r}")
    for name, parameter in own.items():
        value = trained[name].detach().cpu()
        if name in _OF_THE_VOCABULARY:
            value = rows_for(value, start.tokenizer, tokenizer)
        if value.shape != parameter.shape:
            shapes = f"expected {tuple(parameter.shape)}, got {tuple(value.shape)}"
            raise ValueError(f"start: {name} of {start.card.name!r} has another shape: {shapes}")
        parameter.copy_(value)
