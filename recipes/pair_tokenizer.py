"""One BPE vocabulary for the English and the French of a translator."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from viz_core.pretrained.tokenization import BOS, EOS, PAD, UNK, WORD_START

# Pieces a reader sees as words of their own: elided French words (j', qu'), English
# contractions ('s, n't), single digits and punctuation.
_PIECES = (
    rf"(?i){WORD_START}?(?<![\p{{L}}])(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)'(?=\p{{L}})"
    rf"|(?<=\p{{L}})(?:n't|'(?:s|m|re|ve|ll|d))(?![\p{{L}}'])"
    rf"|{WORD_START}?[^\p{{L}}\p{{N}}\s'{WORD_START}]"
)


def train_tokenizer(texts: Iterable[str], vocab_size: int, byte_fallback: bool = False) -> Tokenizer:
    """Byte-pair encoding (Sennrich 2016) over cleaned text; ids 0 to 3 are padding, beginning, end, unknown.

    Args:
        vocab_size: how many tokens there may be, but for those of bytes.
        byte_fallback: letters that no text had are spelled by their UTF-8 bytes, 256 more tokens, and a digit is the
            same token wherever it stands, so that there is nothing that cannot be copied.
    """
    digit = r"\p{N}" if byte_fallback else rf"{WORD_START}?\p{{N}}"
    tokenizer = Tokenizer(models.BPE(unk_token=UNK))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Split(Regex(f"{_PIECES}|{digit}"), behavior="isolated")]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=[PAD, BOS, EOS, UNK], min_frequency=2)
    tokenizer.train_from_iterator(texts, trainer)
    return _with_bytes(tokenizer) if byte_fallback else tokenizer


def _with_bytes(tokenizer: Tokenizer) -> Tokenizer:
    """The same with a token for the blank, each digit and each byte, <0x00> to <0xFF>; what it lacks comes last.

    No merge makes them: they stand for letters that the vocabulary lacks, and for nothing else.
    """
    content = json.loads(tokenizer.to_str())
    vocab = content["model"]["vocab"]
    for token in (WORD_START, *"0123456789", *(f"<0x{byte:02X}>" for byte in range(256))):
        vocab.setdefault(token, len(vocab))
    content["model"]["byte_fallback"] = True
    content["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, content["decoder"]]}
    return Tokenizer.from_str(json.dumps(content))
