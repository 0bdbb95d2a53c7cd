"""The book's two translators, trained as it prints them, on the four sentences it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from safetensors.torch import save_file
from torch import Tensor

from recipes.batches import Example, PairBatch, collate
from recipes.book_card import translation_card
from recipes.book_fit import BATCH_SIZE, fit
from recipes.book_pairs import NUM_STEPS, NUM_TRAIN, BookPairs, prepare, tokenize
from recipes.files import write_json
from recipes.sentence_pairs import read_text
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained.decoding import greedy_search
from viz_core.pretrained.tokenization import PAD
from viz_core.pretrained.translator import TRANSLATION_ARCHITECTURES

SENTENCES = {  # with the translation that the book counts as right
    "go .": "va !",
    "i lost .": "j'ai perdu .",
    "he's calm .": "il est calme .",
    "i'm home .": "je suis chez moi .",
}


@dataclass(frozen=True)
class BookTranslatorSpec:
    """One of the book's runs: what it trains, how, and what its PyTorch edition printed."""

    title: str
    section: str
    architecture: str
    sizes: dict[str, Any]
    learning_rate: float  # of Adam
    printed: tuple[str, ...]  # for SENTENCES, in their order
    differs: str  # where our model class is not quite the book's
    epochs: int = 30
    clip_norm: float = 1.0


BOOK_TRANSLATORS = {
    "book-transformer": BookTranslatorSpec(
        "The book's Transformer, English to French",
        "11.7",
        "transformer",
        {"num_hiddens": 256, "ffn_num_hiddens": 64, "num_heads": 4, "num_blks": 2, "dropout": 0.2},
        1e-3,
        ("va !", "j'ai perdu .", "il est mouillé .", "je suis chez moi ."),
        "The decoder is causal in evaluation too, where the book's sees all words of the validation pairs at once.",
    ),
    "book-bahdanau": BookTranslatorSpec(
        "The book's GRU with attention, English to French",
        "11.4",
        "seq2seq-attention",
        {"embed_size": 256, "num_hiddens": 256, "num_layers": 2, "dropout": 0.2},
        5e-3,
        ("va !", "j'ai perdu .", "il court .", "je suis chez moi ."),
        "The encoder stops at the end of each sentence; the book's reads the padding after it as well.",
    ),
}


def train(
    name: str,
    data: Path,
    out: Path,
    device: torch.device,
    epochs: int | None = None,
    seeds: Sequence[int] = (0,),
    limit: int | None = None,
) -> None:
    """Train one of BOOK_TRANSLATORS with each seed; write weights, vocabularies, curves, translations and a card.

    Args:
        epochs: instead of the book's 30.
        limit: pairs to train on, instead of the book's 512.

    Raises:
        ValueError: if the data has too few pairs, or epochs or limit is below 1.
    """
    spec = BOOK_TRANSLATORS[name]
    epochs = spec.epochs if epochs is None else epochs
    pairs = prepare(read_text(data), NUM_TRAIN if limit is None else limit)
    out.mkdir(parents=True, exist_ok=True)
    vocabularies = {"source": pairs.source_words.words, "target": pairs.target_words.words}
    write_json(out / "vocabularies.json", vocabularies)
    runs = []
    for seed in seeds:
        model, curve = train_once(spec, pairs, seed, epochs, device)
        save_file(model.state_dict(), out / f"seed-{seed}.safetensors")
        runs.append({"seed": seed, "curve": curve, "translations": translate(model, pairs, list(SENTENCES), device)})
    record = {
        "settings": {
            **spec.sizes,
            "lr": spec.learning_rate,
            "clip_norm": spec.clip_norm,
            "batch_size": BATCH_SIZE,
            "num_steps": NUM_STEPS,
            "epochs": epochs,
        },
        "pairs": len(pairs.train.source),
        "vocabularies": [len(words) for words in vocabularies.values()],
        "printed": dict(zip(SENTENCES, spec.printed, strict=True)),
        "references": SENTENCES,
        "runs": runs,
    }
    write_json(out / "training.json", record)
    card = translation_card(name, spec.title, spec.section, spec.differs, record)
    (out / "card.md").write_text(card, encoding="utf-8")


def train_once(
    spec: BookTranslatorSpec, pairs: BookPairs, seed: int, epochs: int, device: torch.device
) -> tuple[EncoderDecoder, list[dict[str, float]]]:
    """A model trained from this seed, and its learning curve."""
    torch.manual_seed(seed)
    encoder, decoder = TRANSLATION_ARCHITECTURES[spec.architecture]
    model = EncoderDecoder(
        encoder(len(pairs.source_words), **spec.sizes), decoder(len(pairs.target_words), **spec.sizes)
    ).to(device)
    return model, fit_pairs(model, spec, pairs, epochs, device)


def fit_pairs(
    model: EncoderDecoder, spec: BookTranslatorSpec, pairs: BookPairs, epochs: int, device: torch.device
) -> list[dict[str, float]]:
    """Train a model on the pairs with the settings of a spec; return its learning curve."""
    training, validation = pairs.train.to(device), pairs.validation.to(device)
    pad = pairs.target_words.special.pad
    return fit(
        model,
        torch.optim.Adam(model.parameters(), lr=spec.learning_rate),
        len(training.source),
        lambda rows: masked_loss(model, PairBatch(*(part[rows.to(device)] for part in training)), pad),
        lambda: {"validation_loss": float(masked_loss(model, validation, pad))},
        epochs,
        spec.clip_norm,
    )


def masked_loss(model: EncoderDecoder, batch: PairBatch, pad: int) -> Float[Tensor, ""]:
    """Mean cross-entropy of the target tokens without padding, in nats."""
    logits = model(batch.source, batch.target[:, :-1], batch.valid_lens)
    return F.cross_entropy(logits.flatten(0, 1), batch.target[:, 1:].flatten(), ignore_index=pad)


def translate(model: EncoderDecoder, pairs: BookPairs, sentences: Sequence[str], device: torch.device) -> list[str]:
    """Greedy translations of at most NUM_STEPS tokens, with blanks between these."""
    source_words, target_words, special = pairs.source_words, pairs.target_words, pairs.target_words.special
    examples = [Example(source_words.encode(tokenize(sentence)), [special.bos]) for sentence in sentences]
    batch = collate(examples, source_words.numbers[PAD]).to(device)
    found = greedy_search(model, batch.source, batch.valid_lens, special, NUM_STEPS)
    return [target_words.decode(numbers) for numbers in found]
