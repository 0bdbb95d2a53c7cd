"""English-French sentence pairs: downloaded, cleaned, split by the English sentence; vocabulary, words and batches.

Of the English words a file is written beside each translator, words.json, with the number of training sentences that
each is in, for the note on words that a translator hardly saw: python -m recipes word-counts NAME --data DIR.
"""

import gzip
import hashlib
import io
import json
import random
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from recipes.files import fetch, record
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained import load_translator
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.familiarity import COUNTS, FEW, WordCounts, words_of
from viz_core.pretrained.tokenization import BOS, EOS, PAD, UNK, WORD_START, clean, special_tokens

ARCHIVE_URL = "http://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip"
ARCHIVE_SHA1 = "94646ad1522d915e7b0f9296181140edcf86a4f5"
SOURCE = "English-French sentence pairs of the Tatoeba project, as packed by ManyThings/Anki (2019-04-07)"
LICENCE = "CC BY 2.0 (attribution: www.manythings.org/anki and tatoeba.org)"
HELD_OUT_PERCENT = 2  # for validation, and as much again for test


class Pair(NamedTuple):
    """A sentence and one translation of it, both cleaned."""

    english: str
    french: str


class Split(NamedTuple):
    """No English sentence stands in two parts, whatever its translations, capitals or spacing."""

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]


def load_pairs(folder: Path) -> list[Pair]:
    """Clean pairs from fra.txt, fra.txt.gz or fra-eng.zip in `folder`, or the public archive."""
    return [pair for pair in map(_parse, read_text(folder).splitlines()) if pair.english and pair.french]


def split_pairs(pairs: Sequence[Pair]) -> Split:
    """About 96 / 2 / 2 percent, by a hash of the English sentence: the same on every machine, for ever."""
    split = Split([], [], [])
    for pair in pairs:
        digest = hashlib.sha256(pair.english.casefold().encode()).digest()
        percent = int.from_bytes(digest[:8], "big") % 100
        part = 1 if percent < HELD_OUT_PERCENT else 2 if percent < 2 * HELD_OUT_PERCENT else 0
        split[part].append(pair)
    return split


def group_references(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """Every translation of each English sentence, in the order they come."""
    references: dict[str, list[str]] = {}
    for pair in pairs:
        references.setdefault(pair.english, []).append(pair.french)
    return references


def read_text(folder: Path) -> str:
    """The whole file, a pair a line, from fra.txt, fra.txt.gz or fra-eng.zip in `folder`, or the public archive."""
    if (folder / "fra.txt").exists():
        return (folder / "fra.txt").read_text(encoding="utf-8")
    if (folder / "fra.txt.gz").exists():
        try:
            return gzip.decompress((folder / "fra.txt.gz").read_bytes()).decode("utf-8")
        except (EOFError, zlib.error) as error:
            raise ValueError(f"fra.txt.gz cannot be read, it may be cut short: {error}") from None
    archive = folder / "fra-eng.zip"
    content = fetch(ARCHIVE_URL, archive, ARCHIVE_SHA1, "sha1")
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        return opened.read("fra-eng/fra.txt").decode("utf-8")


def _parse(line: str) -> Pair:
    fields = line.split("\t")
    return Pair(clean(fields[0]), clean(fields[1])) if len(fields) > 1 else Pair("", "")


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


def count_for_shipped(name: str, checkpoints: Path, data: Path) -> None:
    """Count in how many training sentences of a translator each English word is."""
    load_translator(name, "cpu", checkpoints)  # refuses what is no translator
    record_word_counts(split_pairs(load_pairs(data)).train, checkpoints / name)


def record_word_counts(train: Sequence[Pair], folder: Path) -> None:
    """Count the English of the training pairs, each sentence once, and write it beside the checkpoint."""
    counts = count_words(group_references(train))
    (folder / COUNTS).write_text(as_json(counts), encoding="utf-8")
    measured = {
        "sentences": counts.sentences,
        "different": len(counts.counts),
        "hardly_seen": sum(count < FEW for count in counts.counts.values()),
    }
    record(folder, {"words": measured}, word_section(measured))


def count_words(sentences: Iterable[str]) -> WordCounts:
    """Return in how many sentences each word is; one that holds a word twice counts once."""
    counts, number = Counter[str](), 0
    for sentence in sentences:
        counts.update(set(words_of(sentence)))
        number += 1
    return WordCounts(number, {word: min(FEW, count) for word, count in counts.items()})


def as_json(counts: WordCounts) -> str:
    """Return the file that `WordCounts.from_json` reads: words by their count, so that it stays small."""
    by_count = {
        str(count): " ".join(sorted(word for word, own in counts.counts.items() if own == count))
        for count in range(1, FEW + 1)
    }
    return json.dumps({"sentences": counts.sentences, "words": by_count}, indent=1, ensure_ascii=False) + "\n"


def word_section(measured: dict[str, Any]) -> str:
    """Return the section of the card."""
    return f"""## Words

The {measured["sentences"]:,} English sentences that it was trained on hold {measured["different"]:,} different words
and numbers, as they are written, capitals and all. Of these {measured["hardly_seen"]:,} stand in fewer than {FEW}
sentences. {COUNTS} has all of them, by the number of sentences they stand in, from {FEW} on together.
"""


class Example(NamedTuple):
    """A sentence pair as token ids."""

    source: list[int]  # ... eos
    target: list[int]  # bos ... eos


class PairBatch(NamedTuple):
    """Examples padded to one length a side."""

    source: Int[Tensor, "batch keys"]
    valid_lens: Int[Tensor, " batch"]
    target: Int[Tensor, "batch steps"]  # bos y_1 ... y_m eos, padded

    def to(self, device: torch.device) -> "PairBatch":
        """Return the batch on another device."""
        return PairBatch(*(t.to(device, non_blocking=True) for t in self))


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[Pair], max_tokens: int) -> list[Example]:
    """Return token ids of each pair; pairs longer than max_tokens on a side are left out."""
    special = special_tokens(tokenizer)
    sources = tokenizer.encode_batch([pair.english for pair in pairs])
    targets = tokenizer.encode_batch([pair.french for pair in pairs])
    examples = [
        Example([*s.ids, special.eos], [special.bos, *t.ids, special.eos])
        for s, t in zip(sources, targets, strict=True)
    ]
    return [e for e in examples if max(len(e.source), len(e.target)) <= max_tokens]


def plan_batches(examples: Sequence[Example], tokens: int, seed: int | None = None) -> list[list[int]]:
    """Return the examples of each batch: neighbours by target length, then source length."""
    order = list(range(len(examples)))
    mix = random.Random(seed)
    if seed is not None:
        mix.shuffle(order)  # the sort below is stable: examples of equal lengths stay mixed
    order.sort(key=lambda i: (len(examples[i].target), len(examples[i].source)))
    plans: list[list[int]] = [[]]
    source = target = 0  # the longest of the batch so far: what its rows are padded to
    for i in order:
        source, target = max(source, len(examples[i].source)), max(target, len(examples[i].target))
        if plans[-1] and (source + target) * (len(plans[-1]) + 1) > tokens:
            plans.append([])
            source, target = len(examples[i].source), len(examples[i].target)
        plans[-1].append(i)
    if seed is not None:
        mix.shuffle(plans)
    return [plan for plan in plans if plan]


def collate(examples: Sequence[Example], pad: int) -> PairBatch:
    """Pad a few examples into one batch."""
    sources = [torch.tensor(e.source) for e in examples]
    targets = [torch.tensor(e.target) for e in examples]
    return PairBatch(
        pad_sequence(sources, batch_first=True, padding_value=pad),
        torch.tensor([len(s) for s in sources]),
        pad_sequence(targets, batch_first=True, padding_value=pad),
    )


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
