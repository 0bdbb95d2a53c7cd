"""The models that ship with the project: list them, load them, translate with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from tokenizers import Tokenizer

from viz_core.decoding import beam_search, greedy_search
from viz_core.device import best_device, find_device
from viz_core.models.encoder_decoder import EncoderDecoder, share_embeddings
from viz_core.models.seq2seq import Seq2SeqAttentionDecoder, Seq2SeqDecoder, Seq2SeqEncoder
from viz_core.models.transformer import TransformerDecoder, TransformerEncoder
from viz_core.tokenization import UNK, SpecialTokens, clean, readable, special_tokens, token_id
from viz_core.trace import Trace, record

CHECKPOINTS = Path(__file__).resolve().parent.parent / "assets" / "checkpoints"
TRANSLATION_ARCHITECTURES = {
    "transformer": (TransformerEncoder, TransformerDecoder),
    "seq2seq-attention": (Seq2SeqEncoder, Seq2SeqAttentionDecoder),
    "seq2seq": (Seq2SeqEncoder, Seq2SeqDecoder),
}
MAX_CHARACTERS = 2000
MAX_SOURCE_TOKENS = 512
MAX_NEW_TOKENS = 256


class CheckpointError(ValueError):
    """A checkpoint that is missing, truncated or of the wrong shape; the message says which and what to do."""


class TextError(ValueError):
    """A text that cannot be translated; the message is a sentence for the person who typed it."""


@dataclass(frozen=True)
class ModelCard:
    """What is known of a shipped model, from its config.json, card.md and training.json."""

    name: str
    title: str
    task: str  # "translation"
    config: dict[str, Any]
    scores: dict[str, float]
    licence: str
    text: str  # the whole card, Markdown
    training: dict[str, Any]  # curves, scores by length, time and device, as the training script wrote them


@dataclass(frozen=True)
class Translation:
    """A translation and the attention that made it.

    Row i of a decoder map is the step that writes `target_tokens[i]`; its own keys are
    `decoder_tokens`: the beginning and the words written before.
    """

    text: str
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    decoder_tokens: tuple[str, ...]
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    log_probability: float  # natural logarithm of p(target | source)
    num_unknown: int  # source tokens the vocabulary does not have
    complete: bool  # False where max_new_tokens cut it short
    trace: Trace


@dataclass(frozen=True)
class Translator:
    """A shipped encoder-decoder with its tokenizer. Safe to share between threads: nothing of a call is kept."""

    card: ModelCard
    model: EncoderDecoder
    tokenizer: Tokenizer
    device: torch.device

    @property
    def special(self) -> SpecialTokens:
        return special_tokens(self.tokenizer)

    def encode(self, text: str) -> list[int]:
        """Token ids of a cleaned text, with eos at the end.

        Raises:
            TextError: if the text is empty, too long, or holds nothing the vocabulary knows.
        """
        if len(text) > MAX_CHARACTERS:
            raise TextError(f"This text has {len(text):,} characters; at most {MAX_CHARACTERS:,} can be translated.")
        cleaned = clean(text)
        if not cleaned:
            raise TextError("There is nothing to translate yet: type an English sentence.")
        ids = self.tokenizer.encode(cleaned).ids
        if not any(character.isalnum() for character in self.tokenizer.decode(ids)):
            raise TextError("The model knows no word or sign in this text. It was trained on English in Latin letters.")
        if len(ids) >= MAX_SOURCE_TOKENS:
            raise TextError(f"This text has {len(ids):,} tokens; the model takes at most {MAX_SOURCE_TOKENS - 1:,}.")
        return [*ids, self.special.eos]

    @torch.inference_mode()
    def translate(self, text: str, max_new_tokens: int = MAX_NEW_TOKENS, beam: int = 1) -> Translation:
        """Translate by greedy search (beam 1) or beam search with a cache, then record one teacher-forced pass.

        Args:
            max_new_tokens: 1 to 256.
            beam: 1 to 16 hypotheses.

        Raises:
            TextError: if the text is empty, longer than 2,000 characters or 511 tokens, or wholly unknown.
            ValueError: if beam or max_new_tokens is out of range.
        """
        if not 1 <= max_new_tokens <= MAX_NEW_TOKENS:
            raise ValueError(f"max_new_tokens: expected 1 to {MAX_NEW_TOKENS}, got {max_new_tokens}")
        if not 1 <= beam <= 16:
            raise ValueError(f"beam: expected 1 to 16, got {beam}")
        source_ids = self.encode(text)
        source = torch.tensor([source_ids], device=self.device)
        valid_lens = torch.tensor([len(source_ids)], device=self.device)
        limit = min(max_new_tokens, 2 * len(source_ids) + 20)
        if beam == 1:
            target_ids = greedy_search(self.model, source, valid_lens, self.special, limit)[0]
        else:
            target_ids = beam_search(self.model, source, valid_lens, self.special, limit, beam)[0]

        decoder_ids = [self.special.bos, *target_ids[:-1]]
        with record() as trace:
            logits = self.model(source, torch.tensor([decoder_ids], device=self.device), valid_lens)
        log_p = logits[0].float().log_softmax(dim=-1)
        return Translation(
            text=self.tokenizer.decode(target_ids),
            source_tokens=self.readable_tokens(source_ids),
            target_tokens=self.readable_tokens(target_ids),
            decoder_tokens=self.readable_tokens(decoder_ids),
            source_ids=tuple(source_ids),
            target_ids=tuple(target_ids),
            log_probability=float(log_p[range(len(target_ids)), target_ids].sum()),
            num_unknown=source_ids.count(token_id(self.tokenizer, UNK)),
            complete=target_ids[-1] == self.special.eos,
            trace=trace,
        )

    def readable_tokens(self, ids: Sequence[int]) -> tuple[str, ...]:
        return tuple(readable(self.tokenizer.id_to_token(i) or UNK) for i in ids)


def available(folder: Path | None = None) -> tuple[ModelCard, ...]:
    """Cards of the models that ship, by name; a folder without a readable config.json is left out."""
    cards = []
    for path in sorted((folder or CHECKPOINTS).glob("*/config.json")):
        try:
            cards.append(read_card(path.parent))
        except CheckpointError:
            continue
    return tuple(cards)


def load(name: str, device: torch.device | str | None = None, folder: Path | None = None) -> Translator:
    """Load a shipped model in evaluation mode, float32, on `device` (the best there is unless given).

    Raises:
        CheckpointError: if there is no such model, or its files are missing, truncated, altered or of the wrong shape.
        ValueError: if the device is not on this machine.
    """
    folder = folder or CHECKPOINTS
    folders = {path.parent.name: path.parent for path in folder.glob("*/config.json")}
    if name not in folders:
        names = ", ".join(card.name for card in available(folder)) or "none"
        raise CheckpointError(f"There is no model {name!r}; the models that ship are {names}.")
    path = folders[name]  # one that is there: never a path made from what came in a link
    card = read_card(path)
    where = best_device() if device is None else find_device(str(device))
    tokenizer = _read_tokenizer(path / "tokenizer.json")
    model = build_translation_model(card.config.get("model", {}))
    known, stored = model.encoder.embedding.num_embeddings, tokenizer.get_vocab_size()
    if known != stored:
        raise CheckpointError(f"tokenizer.json does not fit the model: expected {known:,} tokens, got {stored:,}")
    load_weights(model, path / "model.safetensors", card.config.get("sha256"))
    return Translator(card, model.to(where).eval().requires_grad_(False), tokenizer, where)


def build_translation_model(config: dict[str, Any]) -> EncoderDecoder:
    """The model a config describes, with one matrix shared by all embeddings.

    Args:
        config: "architecture", one of TRANSLATION_ARCHITECTURES, and the sizes its encoder and decoder take.

    Raises:
        CheckpointError: if the config names no known architecture, lacks a field, names one the architecture
            has not, or gives one an impossible value.
    """
    name = config.get("architecture") if isinstance(config, dict) else None
    if name not in TRANSLATION_ARCHITECTURES:
        known = ", ".join(TRANSLATION_ARCHITECTURES)
        raise CheckpointError(f"config.json does not describe a known architecture, got {name!r}; there are {known}")
    encoder, decoder = TRANSLATION_ARCHITECTURES[name]
    sizes = {field: size for field, size in config.items() if field != "architecture"}
    try:
        return share_embeddings(EncoderDecoder(encoder(**sizes), decoder(**sizes)))
    except (TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"config.json does not describe this architecture: {error}") from None


def load_weights(model: torch.nn.Module, path: Path, sha256: str | None = None) -> None:
    """Fill a model from safetensors, strictly: every parameter once, each of its shape.

    Raises:
        CheckpointError: if the file is missing, truncated or altered, or does not fit the model.
    """
    content = _read_bytes(path)
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise CheckpointError(
            f"{path.name} is not the file that was published (its SHA-256 differs): it may be cut short or altered. "
            "Fetch it again."
        )
    try:
        tensors = load_tensors(content)
    except SafetensorError as error:
        raise CheckpointError(f"{path.name} cannot be read, it may be cut short: {error}") from None
    # Shared parameters are stored once, under the first of their names.
    expected = dict(model.named_parameters())
    missing, extra = sorted(expected.keys() - tensors.keys()), sorted(tensors.keys() - expected.keys())
    if missing or extra:
        raise CheckpointError(f"{path.name} does not fit the model: missing {missing[:3]}, unknown {extra[:3]}")
    with torch.no_grad():
        for name, parameter in expected.items():
            if tensors[name].shape != parameter.shape:
                shapes = f"expected {tuple(parameter.shape)}, got {tuple(tensors[name].shape)}"
                raise CheckpointError(f"{path.name}: {name} has the wrong shape: {shapes}")
            parameter.copy_(tensors[name])


def read_card(folder: Path) -> ModelCard:
    """The card of the model in `folder`.

    Raises:
        CheckpointError: if config.json is missing or does not hold what a card needs.
    """
    path = folder / "config.json"
    try:
        config = json.loads(_read_bytes(path))
        text = (folder / "card.md").read_text(encoding="utf-8") if (folder / "card.md").is_file() else ""
        record = folder / "training.json"
        training = json.loads(_read_bytes(record)) if record.is_file() else {}
        return ModelCard(
            folder.name,
            config["title"],
            config["task"],
            config,
            config.get("scores", {}),
            config["licence"],
            text,
            training,
        )
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path.name} of model {folder.name!r} cannot be read: {error!r}") from None


def _read_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_str(_read_bytes(path).decode("utf-8"))
        special_tokens(tokenizer)
        token_id(tokenizer, UNK)
    except CheckpointError:
        raise
    except Exception as error:  # tokenizers raises bare Exception for a broken file
        raise CheckpointError(f"{path.name} cannot be read: {error}") from None
    tokenizer.encode_special_tokens = True  # "<eos>" in what a person types is text like any other
    return tokenizer


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise CheckpointError(f"The model {path.parent.name!r} lacks its file {path.name}.") from None
