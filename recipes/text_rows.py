"""English sentences as rows of tokens, one or two in a row, words hidden in them, and the byte-level vocabulary."""

import math
import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

PAD, START, STOP, MASK = "<pad>", "<s>", "</s>", "<mask>"
SPECIAL = {PAD: 0, START: 1, STOP: 2, MASK: 3}
"""Their ids, in this order."""


class Sentence(NamedTuple):
    """The tokens of a sentence, and the number of the word that each is a piece of."""

    ids: list[int]
    words: list[int]


class TextBatch(NamedTuple):
    """Texts padded to one length."""

    ids: Int[Tensor, "batch tokens"]
    words: Int[Tensor, "batch tokens"]  # -1 for special tokens
    segments: Int[Tensor, "batch tokens"]  # 1 for the second of two sentences, and its end

    def to(self, device: torch.device) -> "TextBatch":
        """The same on another device."""
        return TextBatch(*(t.to(device, non_blocking=True) for t in self))


def encode(tokenizer: Tokenizer, sentences: Sequence[str]) -> list[Sentence]:
    """Each sentence's tokens, without special ones."""
    found = tokenizer.encode_batch(list(sentences), add_special_tokens=False)
    return [Sentence(each.ids, [-1 if word is None else word for word in each.word_ids]) for each in found]


def plan_rows(
    sentences: Sequence[Sentence], tokens: int, seed: int | None = None, in_pairs: float = 0.25
) -> list[list[tuple[int, ...]]]:
    """Which sentences share a row, and which rows a batch: texts of like length, at most `tokens` a batch with padding.

    With a seed in random order, and so often two in a row that this share of the rows are pairs; without, each alone.
    """
    order = list(range(len(sentences)))
    mix = random.Random(seed)
    rows: list[tuple[int, ...]] = []
    if seed is not None:
        mix.shuffle(order)
    while order:
        count = 2 if seed is not None and mix.random() < in_pairs else 1
        rows.append(tuple(order[-count:]))
        del order[-count:]

    def length(row: tuple[int, ...]) -> int:
        return 1 + sum(len(sentences[i].ids) + 1 for i in row)

    rows.sort(key=length)
    batches: list[list[tuple[int, ...]]] = [[]]
    for row in rows:  # the longest so far
        if batches[-1] and length(row) * (len(batches[-1]) + 1) > tokens:
            batches.append([])
        batches[-1].append(row)
    if seed is not None:
        mix.shuffle(batches)
    return [batch for batch in batches if batch]


def collate(sentences: Sequence[Sentence], rows: Sequence[tuple[int, ...]], stop_between: bool) -> TextBatch:
    """Rows as a batch: <s> A </s>, or <s> A </s> B </s>; without `stop_between` <s> A B </s>, one text that goes on."""
    ids, words, segments = [], [], []
    for row in rows:
        own, pieces, part = [SPECIAL[START]], [-1], [0]
        for number, i in enumerate(row):
            sentence = sentences[i]
            ends = [SPECIAL[STOP]] if stop_between or number == len(row) - 1 else []
            own += [*sentence.ids, *ends]
            pieces += [*(1000 * number + word for word in sentence.words), *(-1 for _ in ends)]
            part += [number * stop_between] * (len(sentence.ids) + len(ends))
        ids.append(torch.tensor(own))
        words.append(torch.tensor(pieces))
        segments.append(torch.tensor(part))
    return TextBatch(
        pad_sequence(ids, batch_first=True, padding_value=SPECIAL[PAD]),
        pad_sequence(words, batch_first=True, padding_value=-1),
        pad_sequence(segments, batch_first=True),
    )


def hide_words(
    batch: TextBatch, vocabulary_size: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch tokens"], Bool[Tensor, "batch tokens"]]:
    """Whole words hidden, as in BERT (Devlin 2019, section 3.1): each with a chance drawn per row, between 0.1 and 0.4.

    Of the hidden words eight tenths become <mask>, a tenth other tokens, and a tenth stay.

    Returns:
        What the model is given, and which tokens it must name.
    """
    rows, tokens = batch.ids.shape
    share = 0.1 + 0.3 * torch.rand(rows, 1, generator=generator)
    _, own = batch.words.unique(return_inverse=True)  # a word's pieces have one number, and one draw
    draws = torch.rand(2, rows, int(own.max()) + 1, generator=generator)
    hidden = (draws[0].gather(1, own) < share) & (batch.words >= 0)
    fate = draws[1].gather(1, own)
    other = torch.randint(len(SPECIAL), vocabulary_size, (rows, tokens), generator=generator)
    given = batch.ids.masked_fill(hidden & (fate < 0.8), SPECIAL[MASK])
    return torch.where(hidden & (fate >= 0.9), other, given), hidden


def train_tokenizer(texts: Iterable[str], vocabulary_size: int) -> Tokenizer:
    """Byte-level BPE (Radford 2019, section 2.2), digits one by one; what it never saw falls back to bytes."""
    tokenizer = Tokenizer(models.BPE())
    # A blank goes before the text, so that its first word is the token that it is elsewhere.
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Prepend(" ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r" ?\p{N}"), behavior="isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
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


_TOKENS = 4096  # of a batch, in evaluation


class HiddenWord(NamedTuple):
    """A word of a sentence, to be named by who does not see it."""

    sentence: int
    places: tuple[int, ...]  # of its tokens


@torch.inference_mode()
def perplexity(model: Any, sentences: Sequence[Sentence], device: torch.device) -> float:
    """exp(-1/m sum_t ln p(w_t | w_<t)) over the m tokens of the sentences, their ends included, in float32."""
    nats = 0.0
    for rows in plan_rows(sentences, _TOKENS):
        ids = collate(sentences, rows, stop_between=False).ids.to(device)
        logits = model(input_ids=ids[:, :-1]).logits.float()
        nats += float(F.cross_entropy(logits.mT, ids[:, 1:], ignore_index=SPECIAL["<pad>"], reduction="sum"))
    return math.exp(nats / _num_named(sentences))


def hidden_words(tokenizer: Tokenizer, sentences: Sequence[Sentence]) -> list[HiddenWord]:
    """Every word with a letter in it; marks and numbers are not words to be guessed."""
    found = []
    for number, sentence in enumerate(sentences):
        for word in dict.fromkeys(sentence.words):
            places = tuple(i for i, own in enumerate(sentence.words) if own == word)
            if any(c.isalpha() for c in tokenizer.decode([sentence.ids[i] for i in places])):
                found.append(HiddenWord(number, places))
    return found


@torch.inference_mode()
def filled(model: Any, sentences: Sequence[Sentence], words: Sequence[HiddenWord], device: torch.device) -> float:
    """Percent of words of which a masked encoder names every token, each word hidden alone and whole."""
    hidden = [
        sentences[s]._replace(ids=[SPECIAL["<mask>"] if i in places else t for i, t in enumerate(sentences[s].ids)])
        for s, places in words
    ]
    right = 0
    for rows in plan_rows(hidden, _TOKENS):
        batch = collate(hidden, rows, stop_between=True)
        inputs = {"input_ids": batch.ids, "attention_mask": batch.ids.ne(SPECIAL["<pad>"]).long()}
        best = model(**{name: tensor.to(device) for name, tensor in inputs.items()}).logits.argmax(dim=-1)
        for (number,), predicted in zip(rows, best.tolist(), strict=True):
            sentence, places = words[number]
            right += all(predicted[1 + i] == sentences[sentence].ids[i] for i in places)
    return 100 * right / len(words)


def _num_named(sentences: Sequence[Sentence]) -> int:
    return sum(len(each.ids) + 1 for each in sentences)
