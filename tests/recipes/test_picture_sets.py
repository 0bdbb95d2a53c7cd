"""Both data sets read from small files in their real formats, fetched where they lack, refused where altered."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from recipes import picture_sets
from recipes.picture_sets import CIFAR_LABELS, load_cifar10, load_fashion_mnist, read_idx


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
