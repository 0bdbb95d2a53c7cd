"""Sentence pairs and pictures: fetched where they lack, read in their real formats, refused where altered, split."""

import gzip
import hashlib
import http.client
import io
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tokenizers import Tokenizer

from recipes import picture_sets, sentence_pairs
from recipes.picture_sets import CIFAR_LABELS, load_cifar10, load_fashion_mnist, read_idx
from recipes.sentence_pairs import Pair, as_json, count_words, load_pairs, split_pairs, train_tokenizer
from tests.tiny_models import CORPUS, TOKENIZER
from viz_core.maps.word_maps import word_numbers
from viz_core.pretrained.familiarity import FEW, WordCounts
from viz_core.pretrained.samples import held_out
from viz_core.pretrained.tokenization import BOS, EOS, PAD, UNK, WORD_START, SpecialTokens, clean, special_tokens

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


def test_fetches_the_archive_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        opened.writestr("fra-eng/fra.txt", TEXT)
        opened.writestr("fra-eng/_about.txt", "about")
    archive = buffer.getvalue()
    monkeypatch.setattr(sentence_pairs, "ARCHIVE_SHA1", hashlib.sha1(archive).hexdigest())
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
    answer(monkeypatch, http.client.IncompleteRead(b"half"))
    with pytest.raises(OSError, match="fra-eng.zip broke off: IncompleteRead"):
        load_pairs(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "fra-eng.zip").write_bytes(b"something else")
    with pytest.raises(ValueError, match=f"{expected}; delete the file and try again"):
        load_pairs(tmp_path)
    packed = gzip.compress(TEXT.encode())
    (tmp_path / "fra.txt.gz").write_bytes(packed[:40])
    with pytest.raises(ValueError, match=r"fra.txt.gz cannot be read, it may be cut short"):
        load_pairs(tmp_path)
    (tmp_path / "fra.txt.gz").write_bytes(packed)
    assert load_pairs(tmp_path) == PAIRS


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


def test_about_two_percent_on_each_held_out_side_and_the_samples_are_of_the_test() -> None:
    pairs = [Pair(f"Sentence number {i}.", "…") for i in range(20_000)]
    split = split_pairs(pairs)
    assert len(split.validation) / len(pairs) == pytest.approx(0.02, abs=0.003)
    assert len(split.test) / len(pairs) == pytest.approx(0.02, abs=0.003)
    assert len(split.train) + len(split.validation) + len(split.test) == len(pairs)
    assert split_pairs(pairs[::-1]).test == split.test[::-1]
    samples = [Pair(sample.english, "…") for sample in held_out()]
    assert split_pairs(samples).test == samples


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([text for pair in CORPUS for text in pair], vocab_size=300)


def test_pieces_are_words_as_people_see_them_and_frequent_ones_one_token(tokenizer: Tokenizer) -> None:
    for text, pieces in {
        "J'ai faim.": ["▁J'", "ai", "▁faim", "."],
        "Qu'il n'est": ["▁Qu'", "il", "▁n'", "est"],
        "lorsqu'elle": ["▁lorsqu'", "elle"],
        "aujourd'hui": ["▁aujourd'hui"],
        "I'm home": ["▁I", "'m", "▁home"],
        "We don't know": ["▁We", "▁do", "n't", "▁know"],
        "Tom's they'll": ["▁Tom", "'s", "▁they", "'ll"],
        "in 1984!": ["▁in", "▁1", "9", "8", "4", "!"],
        "Va !": ["▁Va", "▁!"],
        "est-il": ["▁est", "-", "il"],
        "(oui)": ["▁(", "oui", ")"],
    }.items():
        assert [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)] == pieces
    frequent = train_tokenizer(["J'ai perdu.", "I'm home.", "I don't know."] * 3, vocab_size=500)
    assert frequent.encode("J'ai perdu.").tokens == ["▁J'", "ai", "▁perdu", "."]
    assert frequent.encode("I don't know I'm").tokens == ["▁I", "▁do", "n't", "▁know", "▁I", "'m"]
    encoded = tokenizer.encode("the 猫")
    assert (encoded.tokens[0], encoded.tokens[-1]) == ("▁the", UNK)
    assert tokenizer.decode(encoded.ids).strip() == "the"


@pytest.fixture(scope="module")
def spelling() -> Tokenizer:
    tokenizer = train_tokenizer([text for pair in CORPUS for text in pair], vocab_size=300, byte_fallback=True)
    tokenizer.encode_special_tokens = True
    return tokenizer


@settings(max_examples=300)
@given(text=st.text(alphabet=st.characters(exclude_characters=WORD_START, exclude_categories=[])))
def test_any_text_comes_back_from_bytes(spelling: Tokenizer, text: str) -> None:
    """All of Unicode, but for the sign that stands for a blank."""
    ids = spelling.encode(clean(text)).ids
    assert spelling.decode(ids) == clean(text)
    assert spelling.token_to_id(UNK) not in ids


def test_digits_are_single_tokens_and_unseen_letters_bytes(spelling: Tokenizer) -> None:
    assert spelling.encode("I 3,407").tokens == ["▁I", "▁", "3", ",", "4", "0", "7"]
    vocab = spelling.get_vocab()
    digits = [token for token in vocab if any(c.isdigit() for c in token) and token[0] != "<"]
    assert sorted(digits) == list("0123456789")
    assert {f"<0x{byte:02X}>" for byte in range(256)} <= vocab.keys()
    assert 256 < len(vocab) <= 300 + 256 + 11
    assert sorted(vocab.values()) == list(range(len(vocab)))
    assert [spelling.id_to_token(i) for i in range(4)] == [PAD, BOS, EOS, UNK]
    tokens = spelling.encode("Žižek").tokens
    assert "".join(tokens) == "▁<0xC5><0xBD>i<0xC5><0xBE>ek"
    assert word_numbers(tokens) == (0,) * len(tokens)
    assert "<0xC5>" not in spelling.encode("<0xC5>").tokens, "what is typed is text like any other"


def test_the_first_ids_have_a_meaning_and_its_size_is_a_bound(tokenizer: Tokenizer) -> None:
    assert [tokenizer.id_to_token(i) for i in range(4)] == [PAD, BOS, EOS, UNK] == ["<pad>", "<bos>", "<eos>", "<unk>"]
    assert special_tokens(tokenizer) == SpecialTokens(pad=0, bos=1, eos=2)
    assert tokenizer.get_vocab() == Tokenizer.from_file(str(TOKENIZER)).get_vocab()  # that of the tests' translator
    texts = ["the cat sat on the mat", "the dog sat on the log"] * 2
    assert train_tokenizer(texts, 25).get_vocab_size() == 25 < train_tokenizer(texts, 500).get_vocab_size() < 500
    assert "▁cat" not in train_tokenizer(["the cat sat", "the dog ran"], 500).get_vocab(), "seen once, worth no token"


def test_sentences_are_counted_not_words_and_what_is_written_is_read() -> None:
    counts = count_words(["a cat, a cat", "A cat", *["a dog"] * (FEW + 3)])
    assert counts.sentences == FEW + 5
    assert counts.counts == {"a": FEW, "cat": 2, "A": 1, "dog": FEW}
    for each in (counts, count_words(["un été", "1984", "Tom's"]), count_words([])):
        assert WordCounts.from_json(as_json(each)) == each


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return gzip.compress(head + array.astype(np.uint8).tobytes())


def archive(files: dict[str, bytes], mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as opened:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            opened.addfile(info, io.BytesIO(content))
    return out.getvalue()


@pytest.fixture
def fashion() -> dict[str, bytes]:
    pixels = np.arange(5 * 28 * 28).reshape(5, 28, 28) % 251
    return {
        "train-images-idx3-ubyte.gz": idx(pixels[:3]),
        "train-labels-idx1-ubyte.gz": idx(np.array([9, 0, 4])),
        "t10k-images-idx3-ubyte.gz": idx(pixels[3:]),
        "t10k-labels-idx1-ubyte.gz": idx(np.array([1, 8])),
    }


def served(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> list[str]:
    """A network that serves these files by the last part of their address; what was asked of it."""
    requested: list[str] = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        requested.append(url)
        return io.BytesIO(files[url.rsplit("/", 1)[-1]])

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return requested


def test_fashion_mnist_is_fetched_once_and_read(
    fashion: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = {name: hashlib.md5(content).hexdigest() for name, content in fashion.items()}
    monkeypatch.setattr(picture_sets, "FASHION_MD5", sums)
    requested = served(monkeypatch, fashion)
    split = load_fashion_mnist(tmp_path / "new")
    assert len(requested) == 4
    assert requested[0] == "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/train-images-idx3-ubyte.gz"
    assert split.train.labels.tolist() == [9, 0, 4]
    assert split.test.labels.tolist() == [1, 8]
    assert split.train.pixels.shape == (3, 1, 28, 28)
    assert split.test.pixels[1, 0, 2, 5] == (4 * 784 + 2 * 28 + 5) % 251
    again = load_fashion_mnist(tmp_path / "new")
    assert len(requested) == 4
    assert torch.equal(again.train.pixels, split.train.pixels)
    (tmp_path / "new" / "t10k-labels-idx1-ubyte.gz").write_bytes(b"other")
    with pytest.raises(ValueError, match="t10k-labels-idx1-ubyte.gz: expected MD5"):
        load_fashion_mnist(tmp_path / "new")


@pytest.mark.parametrize(
    "content",
    [gzip.compress(b"\0\0\x09\x01\0\0\0\x01a"), gzip.compress(b"\0\0\x08\x01\0\0\0\x02a"), gzip.compress(b"")],
    ids=["other type", "too short", "empty"],
)
def test_what_is_no_idx(content: bytes) -> None:
    with pytest.raises(ValueError, match="x.gz: expected an IDX file of bytes"):
        read_idx("x.gz", content)
    with pytest.raises(ValueError, match="x.gz cannot be unpacked"):
        read_idx("x.gz", content[:-9])


def test_cifar10_from_the_public_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = np.arange(3 * 3073).reshape(3, 3073) % 256
    records[:, 0] = [6, 9, 2]
    rows = [row.astype(np.uint8).tobytes() for row in records]
    content = archive(
        {
            "cifar-10-batches-bin/test_batch.bin": rows[2],
            "cifar-10-batches-bin/data_batch_2.bin": rows[1],
            "cifar-10-batches-bin/data_batch_1.bin": rows[0],
            "cifar-10-batches-bin/readme.html": b"<p>",
        },
        "w:gz",
    )
    monkeypatch.setattr(picture_sets, "CIFAR_SHA256", hashlib.sha256(content).hexdigest())
    requested = served(monkeypatch, {"cifar-10-binary.tar.gz": content})
    split = load_cifar10(tmp_path)
    assert requested == ["https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"]
    assert split.train.labels.tolist() == [6, 9]
    assert split.test.labels.tolist() == [2]
    assert split.train.pixels[1, 2, 3, 4] == records[1, 1 + 2048 + 3 * 32 + 4]


def test_cifar10_from_a_copy_as_jpeg(tmp_path: Path) -> None:
    files = {}
    for part, count in (("train", 2), ("test", 1)):
        for label in CIFAR_LABELS:
            for i in reversed(range(count)):
                file = io.BytesIO()
                level = 20 * CIFAR_LABELS.index(label) + 5 * i
                Image.new("RGB", (32, 32), (level, level, 255 - level)).save(file, "JPEG", quality=95)
                files[f"./{part}/{label}/{i:04d}.jpg"] = file.getvalue()
    (tmp_path / "cifar10-jpg.tar.xz").write_bytes(archive(files, "w:xz"))
    split = load_cifar10(tmp_path)
    assert split.train.labels.tolist() == [i for i in range(10) for _ in range(2)]
    assert split.test.labels.tolist() == list(range(10))
    assert split.train.pixels.shape == (20, 3, 32, 32)
    assert abs(int(split.train.pixels[7, 0, 9, 9]) - 65) <= 3
    assert abs(int(split.train.pixels[7, 2, 9, 9]) - 190) <= 3

    whole = (tmp_path / "cifar10-jpg.tar.xz").read_bytes()
    (tmp_path / "cifar10-jpg.tar.xz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"cifar10-jpg.tar.xz cannot be read, it may be cut short"):
        load_cifar10(tmp_path)
    (tmp_path / "cifar10-jpg.tar.xz").write_bytes(archive({"train/plane/1.jpg": b""}, "w:xz"))
    with pytest.raises(ValueError, match="expected pictures train/LABEL/NAME.jpg"):
        load_cifar10(tmp_path)
