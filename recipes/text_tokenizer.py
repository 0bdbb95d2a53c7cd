"""One vocabulary for the models of English: bytes joined into pieces, nothing unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from recipes.text_rows import MASK, PAD, SPECIAL, START, STOP


def train_tokenizer(texts: Iterable[str], vocabulary_size: int) -> Tokenizer:
    """Byte-level BPE (Radford 2019, section 2.2), digits one by one; what it never saw falls back to bytes."""
    tokenizer = Tokenizer(models.BPE())
    # A blank goes before the text, so that its first word is the token that it is elsewhere.
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Prepend(" ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r" ?\p{N}"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def packaged(tokenizer: Tokenizer, ends: bool, limit: int) -> Any:
    """The tokenizer as transformers loads it; a text is given its start and, with `ends`, its end."""
    from transformers import PreTrainedTokenizerFast

    special: Sequence[tuple[str, int]] = [(START, SPECIAL[START]), (STOP, SPECIAL[STOP])]
    own = Tokenizer.from_str(tokenizer.to_str())
    own.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {STOP}" if ends else f"{START} $A",
        pair=f"{START} $A {STOP} $B:1 {STOP}:1" if ends else f"{START} $A $B",
        special_tokens=special,
    )
    names = {"bos_token": START, "eos_token": STOP, "pad_token": PAD, "mask_token": MASK}
    if ends:
        names |= {"cls_token": START, "sep_token": STOP}
    inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if ends else [])]
    return PreTrainedTokenizerFast(
        tokenizer_object=own,
        model_max_length=limit,
        model_input_names=inputs,
        clean_up_tokenization_spaces=False,
        **names,
    )
