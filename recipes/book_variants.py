"""The exercises of the book's GRU with attention: python -m recipes book-variants --data DIR.

Its run of section 11.4 three times over, with the same data, settings and seeds: as printed; with LSTMs in place of
GRUs (exercise 1); with the scaled dot product in place of additive scores (exercise 2).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from recipes.book_pairs import BookPairs, prepare
from recipes.book_translators import BOOK_TRANSLATORS, fit_pairs
from recipes.files import write_json
from recipes.sentence_pairs import read_text
from viz_core.attention.masking import masked_softmax
from viz_core.attention.scores import scaled_dot_scores
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.models.seq2seq import Seq2SeqAttentionDecoder, Seq2SeqEncoder
from viz_core.runtime.assets import ASSETS
from viz_core.trace import name_site

VARIANTS = {  # scores by the scaled dot product, LSTMs
    "printed": (False, False),
    "lstm": (False, True),
    "dot-product": (True, False),
}
FILE = ASSETS / "book" / "bahdanau-variants.json"
_SEEDS = (0, 1, 2)


class DotProductWeighing(nn.Module):
    """The interface of `AdditiveAttention` with a(q, k) = q^T k / sqrt(d), without parameters."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.W_k = nn.Identity()  # keys are the encoder's states as they are
        self.dropout = nn.Dropout(dropout)

    def weigh(
        self,
        queries: Float[Tensor, "batch queries d"],
        keys: Float[Tensor, "batch keys d"],
        valid_lens: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch queries keys"]:
        """softmax over the valid keys of q^T k / sqrt(d) (Vaswani 2017, equation 1)."""
        return masked_softmax(scaled_dot_scores(queries, keys), valid_lens)

    def pool(
        self, weights: Float[Tensor, "batch queries keys"], values: Float[Tensor, "batch keys v"]
    ) -> Float[Tensor, "batch queries v"]:
        """sum_j a_ij v_j; weights are dropped while training."""
        return torch.bmm(self.dropout(weights), values)


class OneStateLSTM(nn.Module):
    """LSTM layers (Hochreiter and Schmidhuber 1997) as an `nn.GRU`: cells and states in one tensor.

    The cells come first, so that the last row is the last layer's state, as the decoder expects.
    """

    def __init__(self, num_inputs: int, num_hiddens: int, num_layers: int, dropout: float) -> None:
        super().__init__()
        self.num_layers, self.hidden_size = 2 * num_layers, num_hiddens  # rows and width of what it carries on
        self.rnn = nn.LSTM(num_inputs, num_hiddens, num_layers, dropout=dropout, batch_first=True)
        for name, parameter in self.rnn.named_parameters():
            if "weight" in name:  # as `init_seq2seq` does to GRUs
                nn.init.xavier_uniform_(parameter)

    def forward(
        self,
        inputs: Float[Tensor, "batch n d_in"] | PackedSequence,
        stacked: Float[Tensor, "stacked batch num_hiddens"] | None = None,
    ) -> tuple[Tensor | PackedSequence, Float[Tensor, "stacked batch num_hiddens"]]:
        """States of the last layer at every step; the cells of all layers, then their states, after the last one."""
        begin = None
        if stacked is not None:
            cells, states = (half.contiguous() for half in stacked.chunk(2))
            begin = states, cells
        outputs, (states, cells) = self.rnn(inputs, begin)
        return outputs, torch.cat([cells, states])


def build(variant: str, pairs: BookPairs) -> EncoderDecoder:
    """The book's model of section 11.4 with the parts of this variant."""
    dot_product, lstm = VARIANTS[variant]
    sizes = BOOK_TRANSLATORS["book-bahdanau"].sizes
    encoder = Seq2SeqEncoder(len(pairs.source_words), **sizes)
    decoder = Seq2SeqAttentionDecoder(len(pairs.target_words), **sizes)
    embed_size, num_hiddens, num_layers, dropout = sizes.values()
    if dot_product:
        decoder.attention = DotProductWeighing(dropout)  # type: ignore[assignment]
        name_site(decoder.attention, "decoder.0.cross")
    if lstm:
        encoder.rnn.rnn = OneStateLSTM(embed_size, num_hiddens, num_layers, dropout)  # type: ignore[assignment]
        decoder.rnn = OneStateLSTM(embed_size + num_hiddens, num_hiddens, num_layers, dropout)  # type: ignore[assignment]
    return EncoderDecoder(encoder, decoder)


def measure(pairs: BookPairs, seeds: Sequence[int], epochs: int, device: torch.device) -> dict[str, Any]:
    """Every variant trained from every seed: parameters, and the curves of both losses, a row for each seed."""
    spec, found = BOOK_TRANSLATORS["book-bahdanau"], {}
    for variant in VARIANTS:
        curves = []
        for seed in seeds:
            torch.manual_seed(seed)
            model = build(variant, pairs).to(device)
            curves.append(fit_pairs(model, spec, pairs, epochs, device))
        found[variant] = {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            **{
                name: [[point[name] for point in curve] for curve in curves]
                for name in ("train_loss", "validation_loss")
            },
        }
    return {"pairs": len(pairs.train.source), "epochs": epochs, "seeds": list(seeds), "variants": found}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m recipes book-variants", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data; fetched into it where lacking")
    parser.add_argument("--out", type=Path, default=FILE, help="the file to write")
    parser.add_argument(
        "--epochs", type=int, default=BOOK_TRANSLATORS["book-bahdanau"].epochs, help="passes over the pairs"
    )
    chosen = parser.parse_args(arguments)
    try:
        pairs = prepare(read_text(chosen.data))
        write_json(chosen.out, measure(pairs, _SEEDS, chosen.epochs, torch.device("cpu")))
    except (ValueError, OSError) as error:
        print(f"cannot train the variants: {error}", file=sys.stderr)
        return 1
    return 0
