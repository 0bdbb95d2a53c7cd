"""The shipped encoder-decoders, which translate sentences and record their attention."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from tokenizers import Tokenizer
from torch import Tensor, nn

from viz_core.maps.alignments import HeadErrors
from viz_core.maps.word_maps import word_numbers
from viz_core.models.encoder_decoder import EncoderDecoder, share_embeddings
from viz_core.models.rnnsearch import RNNSearchDecoder
from viz_core.models.seq2seq import Seq2SeqAttentionDecoder, Seq2SeqDecoder, Seq2SeqEncoder
from viz_core.models.transformer import TransformerEncoder
from viz_core.models.transformer_decoder import TransformerDecoder
from viz_core.pretrained.checkpoint import build_network, load_weights
from viz_core.pretrained.decoding import Logits, beam_search, greedy_search
from viz_core.pretrained.shipped import CheckpointError, ModelCard, read_bytes
from viz_core.pretrained.tokenization import UNK, SpecialTokens, clean, is_spelled, readable, special_tokens, token_id
from viz_core.pretrained.translation import Translation, likeliest_others, word_probabilities
from viz_core.runtime.assets import Provenance
from viz_core.runtime.refusal import RefusalError
from viz_core.trace import Trace, record
from viz_core.trace.one_text import source_of_text
from viz_core.trace.source import StoredTensors

TRANSLATION_ARCHITECTURES: dict[str, tuple[Callable[..., nn.Module], Callable[..., nn.Module]]] = {
    "transformer": (TransformerEncoder, TransformerDecoder),
    "seq2seq-attention": (Seq2SeqEncoder, Seq2SeqAttentionDecoder),
    "rnnsearch": (partial(Seq2SeqEncoder, bidirectional=True), partial(RNNSearchDecoder, attend_to_end=False)),
    "seq2seq": (Seq2SeqEncoder, Seq2SeqDecoder),
}
MAX_CHARACTERS = 2000
MAX_SOURCE_TOKENS = 512
MAX_NEW_TOKENS = 256


class TextError(RefusalError, ValueError):
    """A text that cannot be translated; the message is a sentence for the person who typed it."""


@dataclass(frozen=True)
class Translator:
    """A shipped encoder-decoder with its tokenizer. Safe to share between threads: calls store nothing."""

    card: ModelCard
    model: EncoderDecoder
    tokenizer: Tokenizer
    device: torch.device

    def __repr__(self) -> str:
        """The model's name and device."""
        return f"Translator({self.card.name!r} on {self.device})"

    @property
    def network(self) -> EncoderDecoder:
        """The torch module."""
        return self.model

    @property
    def special(self) -> SpecialTokens:
        """The ids of padding, beginning and end."""
        return special_tokens(self.tokenizer)

    @property
    def alignment_errors(self) -> HeadErrors:
        """Alignment error rates of the cross-attention heads, where they were measured."""
        measured = self.card.training.get("alignments")
        if not measured:
            return ()
        layers = zip(measured["written"], measured["read"], strict=True)
        return tuple(tuple(zip(written, read, strict=True)) for written, read in layers)

    def encode(self, text: str) -> list[int]:
        """Token ids of a cleaned text, with eos at the end.

        Raises:
            TextError: if the text is empty, too long, or holds nothing the vocabulary knows.
        """
        if len(text) > MAX_CHARACTERS:
            raise TextError(
                "This text has {count:,} characters; at most {most:,} can be translated.",
                count=len(text),
                most=MAX_CHARACTERS,
            )
        cleaned = clean(text)
        if not cleaned:
            raise TextError("There is nothing to translate yet: type an English sentence.")
        encoding = self.tokenizer.encode(cleaned)
        ids = encoding.ids
        # Bytes alone are not known words.
        known = [number for number, token in zip(ids, encoding.tokens, strict=True) if not is_spelled(token)]
        if not any(map(str.isalnum, self.tokenizer.decode(known))):
            raise TextError("The model knows no word or sign in this text. It was trained on English in Latin letters.")
        if len(ids) >= MAX_SOURCE_TOKENS:
            raise TextError(
                "This text has {count:,} tokens; the model takes at most {most:,}. Shorten it.",
                count=len(ids),
                most=MAX_SOURCE_TOKENS - 1,
            )
        return [*ids, self.special.eos]

    def translate(self, text: str, max_new_tokens: int = MAX_NEW_TOKENS, beam: int = 1) -> Translation:
        """Translate by greedy search (beam 1) or beam search with a cache, then record one teacher-forced pass.

        Args:
            max_new_tokens: 1 to 256.
            beam: 1 to 16 hypotheses.

        Raises:
            TextError: if the text is empty, longer than 2,000 characters or 511 tokens, or wholly unknown.
            ValueError: if beam or max_new_tokens is out of range.
        """
        return self.translate_all([text], max_new_tokens, beam)[0]

    def translate_all(
        self, texts: Sequence[str], max_new_tokens: int = MAX_NEW_TOKENS, beam: int = 1
    ) -> list[Translation]:
        """`translate` for several texts; by greedy search they are one batch, each to its own length."""
        return self.translate_ids([self.encode(text) for text in texts], max_new_tokens, beam)

    @torch.inference_mode()
    def translate_texts(self, texts: Sequence[str]) -> list[str]:
        """The greedy translations of many texts, as texts alone: nothing is recorded, all are decoded as one batch."""
        sources = [self.encode(text) for text in texts]
        limits = length_limits(sources, MAX_NEW_TOKENS)
        found = self.search(sources, max(limits)) if sources else []
        return [self.tokenizer.decode(ids[:limit]) for ids, limit in zip(found, limits, strict=True)]

    @torch.inference_mode()
    def translate_ids(
        self, sources: Sequence[list[int]], max_new_tokens: int = MAX_NEW_TOKENS, beam: int = 1
    ) -> list[Translation]:
        """`translate_all` for texts that are tokens already: what `encode` made of them.

        Raises:
            ValueError: if beam or max_new_tokens is out of range.
        """
        if not 1 <= max_new_tokens <= MAX_NEW_TOKENS:
            raise ValueError(f"max_new_tokens: expected 1 to {MAX_NEW_TOKENS}, got {max_new_tokens}")
        if not 1 <= beam <= 16:
            raise ValueError(f"beam: expected 1 to 16, got {beam}")
        limits = length_limits(sources, max_new_tokens)
        if beam > 1:  # the last step of a beam depends on its limit, so each by itself
            return [self._translated([ids], [limit], beam)[0] for ids, limit in zip(sources, limits, strict=True)]
        return self._translated(sources, limits) if sources else []

    def _translated(self, sources: Sequence[list[int]], limits: Sequence[int], beam: int = 1) -> list[Translation]:
        """Translate texts as one batch: the encoder runs once for the search and for the maps, the decoder once over
        all results."""
        X, lengths = self._padded(sources)
        logits: list[Logits] = []
        with record() as trace:
            trace.may_be_empty = True  # models without attention translate too
            encoded = self.model.encoder(X, lengths)
        found = self.search(sources, max(limits), beam, logits, encoded)
        targets = [ids[:limit] for ids, limit in zip(found, limits, strict=True)]
        Y, _ = self._padded([[self.special.bos, *ids[:-1]] for ids in targets])
        trace.token_mask = {"decoder": Y.ne(self.special.pad)} if len(targets) > 1 else {}  # for edits
        with trace.adopt():
            passed, _ = self.model.decoder(Y, self.model.decoder.init_state(encoded, lengths))
        rows = zip(sources, targets, logits, passed, text_traces(trace, sources, targets), strict=True)
        return [self._recorded(*row) for row in rows]

    def search(
        self,
        sources: Sequence[list[int]],
        limit: int,
        beam: int = 1,
        logits: list[Logits] | None = None,
        encoded: Any = None,
    ) -> list[list[int]]:
        """Target ids of each source, whose logits are added to those there are; the shorter sources are padded."""
        X, lengths = self._padded(sources)
        if beam == 1:
            return greedy_search(self.model, X, lengths, self.special, limit, logits, encoded)
        return beam_search(self.model, X, lengths, self.special, limit, beam, logits_of=logits, encoded=encoded)

    def _padded(self, texts: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "batch n"], Int[Tensor, " batch"]]:
        """Return token ids as one tensor, the shorter texts padded at their ends, and their lengths."""
        lengths = [len(ids) for ids in texts]
        padded = [[*ids, *[self.special.pad] * (max(lengths) - len(ids))] for ids in texts]
        return torch.tensor(padded, device=self.device), torch.tensor(lengths, device=self.device)

    def teacher_forced(
        self, source_ids: Sequence[int], target_ids: Sequence[int]
    ) -> tuple[Int[Tensor, "1 keys"], Int[Tensor, "1 steps"], Int[Tensor, "1"]]:
        """Return the model's inputs for a finished translation: source, decoder input, and the source's length."""
        source, lengths = self._padded([source_ids])
        return source, self._padded([[self.special.bos, *target_ids[:-1]]])[0], lengths

    def _recorded(
        self, source_ids: list[int], target_ids: list[int], cached: Logits, logits: Logits, trace: Trace
    ) -> Translation:
        """Return a finished translation, with what one teacher-forced pass over it gave.

        Args:
            cached: logits of the decoding steps, to be compared.
            logits: of the pass; padding may follow.
            trace: of the pass.
        """
        decoder_ids, logits = [self.special.bos, *target_ids[:-1]], logits[: len(target_ids)]
        every = logits.float().log_softmax(dim=-1)
        log_p = every[range(len(target_ids)), target_ids]
        others = likeliest_others(every, target_ids, never=(self.special.pad, self.special.bos))
        rivals = [[(self._pieces([token])[0], p) for token, p in step] for step in others]
        target_words = self.word_numbers(target_ids)
        return Translation(
            text=self.tokenizer.decode(target_ids),
            source_tokens=self.readable_tokens(source_ids),
            target_tokens=self.readable_tokens(target_ids),
            decoder_tokens=self.readable_tokens(decoder_ids),
            source_ids=tuple(source_ids),
            target_ids=tuple(target_ids),
            log_probability=float(log_p.sum()),
            log_probabilities=tuple(log_p.tolist()),
            words=word_probabilities(self._pieces(target_ids), target_words, log_p.tolist(), rivals),
            cache_error=float((logits - cached[: len(target_ids)]).abs().max()),
            num_unknown=source_ids.count(token_id(self.tokenizer, UNK)),
            complete=target_ids[-1] == self.special.eos,
            trace=trace,
            source_words=self.word_numbers(source_ids),
            target_words=target_words,
            decoder_words=self.word_numbers(decoder_ids),
            alignment_errors=self.alignment_errors,
            made=Provenance(self.card.name, self.card.revision, self.tokenizer.decode(source_ids)),
        )

    def word_numbers(self, ids: Sequence[int]) -> tuple[int, ...]:
        """For each token the number of the word it is a piece of, counted from 0."""
        return word_numbers(self._pieces(ids))

    def readable_tokens(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Return the tokens in readable form."""
        return tuple(readable(piece) for piece in self._pieces(ids))

    def _pieces(self, ids: Sequence[int]) -> list[str]:
        """Tokens as they are in the vocabulary."""
        return [self.tokenizer.id_to_token(i) or UNK for i in ids]


def text_traces(trace: Trace, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[Trace]:
    """Return the recording of each text of a batch, without the padding after it."""
    if len(sources) == 1:
        return [trace]
    found = [Trace(trace.differentiable, trace.values) for _ in sources]
    for row, (own, *lengths) in enumerate(zip(found, sources, targets, strict=True)):
        read, written = (range(len(ids)) for ids in lengths)
        for call in trace:
            queries = read if call.stack == "encoder" else written
            keys = written if call.stack == "decoder" and call.kind == "self" else read
            source = source_of_text(call.source, row, queries, keys)
            if isinstance(source, StoredTensors):  # copies, so that a text does not hold those of all others in memory
                copies = {name: tensor.clone() for name, tensor in source.named_tensors().items()}
                source = replace(source, **copies)  # type: ignore[type-var]
            own.add_joined(source, call.site)
    return found


def length_limits(sources: Sequence[list[int]], most: int) -> list[int]:
    """Maximum number of tokens of each translation."""
    return [min(most, 2 * len(ids) + 20) for ids in sources]


def read_translator(card: ModelCard, folder: Path, device: torch.device) -> Translator:
    """The translator whose files lie in `folder`, in evaluation mode.

    CheckpointError if a file is missing, truncated or altered, or does not fit the others.
    """
    tokenizer = _read_tokenizer(folder / "tokenizer.json")
    model = build_translation_model(card.config.get("model", {}))
    known, stored = model.encoder.embedding.num_embeddings, tokenizer.get_vocab_size()
    if known != stored:
        raise CheckpointError(
            "tokenizer.json does not fit the model: expected {expected:,} tokens, got {got:,}",
            expected=known,
            got=stored,
        )
    load_weights(model, folder / "model.safetensors", card.config.get("sha256"))
    lay_out_by_columns(model)
    return Translator(card, model.to(device).eval().requires_grad_(False), tokenizer, device)


def lay_out_by_columns(model: nn.Module) -> None:
    """Store the matrices of linear layers column by column: one row times such a matrix takes two thirds of the time.

    They are the same numbers in the same shape; only their order in memory differs.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.weight.data = layer.weight.data.t().contiguous().t()


def build_translation_model(config: dict[str, Any]) -> EncoderDecoder:
    """The model a config describes, with one matrix shared by all embeddings.

    Args:
        config: "architecture", one of TRANSLATION_ARCHITECTURES, and the sizes its encoder and decoder take.
    """
    return build_network(config, {name: partial(_joined, *pair) for name, pair in TRANSLATION_ARCHITECTURES.items()})


def _joined(encoder: Callable[..., nn.Module], decoder: Callable[..., nn.Module], **sizes: Any) -> EncoderDecoder:
    return share_embeddings(EncoderDecoder(encoder(**sizes), decoder(**sizes)))


def _read_tokenizer(path: Path) -> Tokenizer:
    content = read_bytes(path)
    try:
        tokenizer = Tokenizer.from_str(content.decode("utf-8"))
        special_tokens(tokenizer)
        token_id(tokenizer, UNK)
    except Exception as error:  # tokenizers raises bare Exception for a broken file
        raise CheckpointError("{file} cannot be read: {detail}", file=path.name, detail=str(error)) from None
    tokenizer.encode_special_tokens = True  # "<eos>" in what a person types is text like any other
    return tokenizer
