"""Sentence pairs: read from whatever is there, cleaned, and split so that no sentence stands on two sides."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import urllib.request
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes import sentence_pairs
from recipes.sentence_pairs import HELD_OUT_PERCENT, Pair, group_references, load_pairs, split_pairs
from viz_core.pretrained.samples import held_out

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


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A small archive that passes for the published one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        opened.writestr("fra-eng/fra.txt", TEXT)
        opened.writestr("fra-eng/_about.txt", "about")
    monkeypatch.setattr(sentence_pairs, "ARCHIVE_SHA1", hashlib.sha1(buffer.getvalue()).hexdigest())
    return buffer.getvalue()


def answer(monkeypatch: pytest.MonkeyPatch, content: bytes | Exception) -> list[str]:
    """From here on the network answers this; returns the addresses asked for."""
    requested: list[str] = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        requested.append(url)
        if isinstance(content, Exception):
            raise content
        return io.BytesIO(content)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return requested


# Reading


def test_reads_plain_text(tmp_path: Path) -> None:
    (tmp_path / "fra.txt").write_text(TEXT, encoding="utf-8")
    assert load_pairs(tmp_path) == PAIRS


def test_reads_packed_text(tmp_path: Path) -> None:
    (tmp_path / "fra.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert load_pairs(tmp_path) == PAIRS


def test_reads_the_archive(tmp_path: Path, archive: bytes) -> None:
    (tmp_path / "fra-eng.zip").write_bytes(archive)
    assert load_pairs(tmp_path) == PAIRS


def test_fetches_the_archive_once(tmp_path: Path, archive: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    requested = answer(monkeypatch, archive)
    folder = tmp_path / "new" / "folder"
    assert load_pairs(folder) == PAIRS
    assert (folder / "fra-eng.zip").read_bytes() == archive
    assert load_pairs(folder) == PAIRS
    assert requested == ["http://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip"]


def test_another_archive_is_refused_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, b"something else")
    wrong = hashlib.sha1(b"something else").hexdigest()
    expected = f"expected SHA-1 94646ad1522d915e7b0f9296181140edcf86a4f5, got {wrong}"
    with pytest.raises(ValueError, match=expected):
        load_pairs(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "fra-eng.zip").write_bytes(b"something else")
    with pytest.raises(ValueError, match=f"{expected}; delete the file and try again"):
        load_pairs(tmp_path)


def test_no_data_and_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, OSError("no route to host"))
    with pytest.raises(OSError, match="no route to host"):
        load_pairs(tmp_path)


def test_a_download_that_breaks_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, http.client.IncompleteRead(b"half"))
    with pytest.raises(OSError, match="fra-eng.zip broke off: IncompleteRead"):
        load_pairs(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keep", [15, 40])
def test_packed_text_cut_short(tmp_path: Path, keep: int) -> None:
    (tmp_path / "fra.txt.gz").write_bytes(gzip.compress(TEXT.encode())[:keep])
    with pytest.raises(ValueError, match=r"fra.txt.gz cannot be read, it may be cut short"):
        load_pairs(tmp_path)


# Splitting


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
    sides = [{pair.english.casefold() for pair in part} for part in split]
    assert not sides[0] & sides[1]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]


def test_about_two_percent_on_each_held_out_side() -> None:
    pairs = [Pair(f"Sentence number {i}.", "…") for i in range(20_000)]
    split = split_pairs(pairs)
    assert len(split.validation) / len(pairs) == pytest.approx(0.02, abs=0.003)
    assert len(split.test) / len(pairs) == pytest.approx(0.02, abs=0.003)
    assert len(split.train) + len(split.validation) + len(split.test) == len(pairs)
    assert split_pairs(pairs) == split
    assert split_pairs(pairs[::-1]).test == split.test[::-1]


def test_references_in_the_order_they_come() -> None:
    pairs = [Pair("Run!", "Cours !"), Pair("Go.", "Va !"), Pair("Run!", "Courez !"), Pair("Run!", "Cours !")]
    assert group_references(pairs) == {"Run!": ["Cours !", "Courez !", "Cours !"], "Go.": ["Va !"]}


def test_held_out_samples_are_of_the_test_split() -> None:
    digests = [hashlib.sha256(sample.english.casefold().encode()).digest()[:8] for sample in held_out()]
    percents = {int.from_bytes(digest, "big") % 100 for digest in digests}
    assert all(HELD_OUT_PERCENT <= percent < 2 * HELD_OUT_PERCENT for percent in percents)
