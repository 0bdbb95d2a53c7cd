"""Sentence pairs and pictures: fetched where they lack, read in their real formats, refused where altered, split."""

import gzip
import hashlib
import http.client
import io
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from recipes.sentence_pairs import Pair, as_json, count_words, load_pairs, split_pairs, train_tokenizer
from tests.tiny_models import CORPUS
from viz_core.pretrained.familiarity import FEW, WordCounts
from viz_core.pretrained.tokenization import UNK, WORD_START, clean

TEXT = (
    "Go.\tVa\u202f!\tCC-BY 2.0 (France) Attribution: tatoeba.org\n"
    "I\u2019m home.\tJe suis chez moi.\n"
    "\n"
    "no tab\n"
    "only English\t\n"
    "\tseulement français\n"
    "Wow!\tÇa alors\u00a0!\n"
)
PAIRS = [Pair("Go.", "Va !"), Pair("I'm home.", "Je suis chez moi."), Pair("Wow!", "Ça alors !")]


def served(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes | Exception]) -> list[str]:
    """Serve these files by the last part of their address; return the list of the addresses that are requested."""
    requested: list[str] = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        requested.append(url)
        content = files[url.rsplit("/", 1)[-1]]
        if isinstance(content, Exception):
            raise content
        return io.BytesIO(content)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return requested


def test_another_archive_is_refused_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch, {"fra-eng.zip": b"something else"})
    wrong = hashlib.sha1(b"something else").hexdigest()
    expected = f"expected SHA-1 94646ad1522d915e7b0f9296181140edcf86a4f5, got {wrong}"
    with pytest.raises(ValueError, match=expected):
        load_pairs(tmp_path)
    served(monkeypatch, {"fra-eng.zip": http.client.IncompleteRead(b"half")})
    with pytest.raises(OSError, match="fra-eng.zip broke off: IncompleteRead"):
        load_pairs(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "fra-eng.zip").write_bytes(b"something else")
    with pytest.raises(ValueError, match=f"{expected}; delete the file and try again"):
        load_pairs(tmp_path)
    (tmp_path / "fra.txt.gz").write_bytes(gzip.compress(TEXT.encode())[:40])
    with pytest.raises(ValueError, match=r"fra.txt.gz cannot be read, it may be cut short"):
        load_pairs(tmp_path)


def test_the_split_of_known_sentences_stays_for_ever() -> None:
    train = ["Go.", "Hi.", "Run!", "Fire!", "Hello!", "I see."]
    validation = ["Call us.", "Get down!", "I'm safe.", "Don't cry.", "It's done."]
    test = ["I fell.", "I'm OK.", "She runs.", "Come over.", "Let it be."]
    split = split_pairs([Pair(english, "…") for english in (*test, *train, *validation)])
    assert [pair.english for pair in split.train] == train
    assert [pair.english for pair in split.validation] == validation
    assert [pair.english for pair in split.test] == test


@given(
    st.lists(st.tuples(st.sampled_from(["Go.", "GO.", "go.", "I fell.", "i fell.", "Call us."]), st.text(max_size=3)))
)
def test_all_translations_of_a_sentence_stand_together(rows: list[tuple[str, str]]) -> None:
    pairs = [Pair(*row) for row in rows]
    split = split_pairs(pairs)
    assert sorted([*split.train, *split.validation, *split.test]) == sorted(pairs)
    one, two, three = ({pair.english.casefold() for pair in part} for part in split)
    assert one.isdisjoint(two | three)
    assert two.isdisjoint(three)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([text for pair in CORPUS for text in pair], vocab_size=300)


@pytest.fixture(scope="module")
def spelling() -> Tokenizer:
    tokenizer = train_tokenizer([text for pair in CORPUS for text in pair], vocab_size=300, byte_fallback=True)
    tokenizer.encode_special_tokens = True
    return tokenizer


@given(text=st.text(alphabet=st.characters(exclude_characters=WORD_START, exclude_categories=[])))
def test_any_text_comes_back_from_bytes(spelling: Tokenizer, text: str) -> None:
    """All of Unicode, but for the sign that stands for a blank."""
    ids = spelling.encode(clean(text)).ids
    assert spelling.decode(ids) == clean(text)
    assert spelling.token_to_id(UNK) not in ids


def test_sentences_are_counted_not_words_and_what_is_written_is_read() -> None:
    counts = count_words(["a cat, a cat", "A cat", *["a dog"] * (FEW + 3)])
    assert counts.sentences == FEW + 5
    assert counts.counts == {"a": FEW, "cat": 2, "A": 1, "dog": FEW}
    for each in (counts, count_words(["un été", "1984", "Tom's"]), count_words([])):
        assert WordCounts.from_json(as_json(each)) == each
