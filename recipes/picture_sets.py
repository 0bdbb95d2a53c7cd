"""Labelled pictures to train on: the data sets of the shipped classifiers."""

import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int, UInt8
from PIL import Image
from torch import Tensor

from recipes.files import fetch

FASHION_URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
FASHION_MD5 = {
    "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
}
# The binary version: the same pictures as the one for Python, without pickle, which runs what it reads.
CIFAR_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
CIFAR_COPY = "cifar10-jpg.tar.xz"


class Pictures(NamedTuple):
    """Pictures with the number of each one's label."""

    pixels: UInt8[Tensor, "n channels height width"]
    labels: Int[Tensor, " n"]

    def to(self, device: torch.device) -> "Pictures":
        """The same on another device."""
        return Pictures(self.pixels.to(device), self.labels.to(device))

    def part(self, rows: Tensor) -> "Pictures":
        """Those of these rows."""
        return Pictures(self.pixels[rows], self.labels[rows])


class PictureSplit(NamedTuple):
    """Pictures to train on, and the test pictures that nothing was chosen by."""

    train: Pictures
    test: Pictures


@dataclass(frozen=True)
class PictureSet:
    """A public data set: where it comes from, what may be done with it, and how it is read from a folder."""

    labels: tuple[str, ...]
    source: str
    licence: str
    form: str  # how a visitor's picture is brought into its form; see viz_core.preprocessing
    load: Callable[[Path], PictureSplit]


def load_fashion_mnist(folder: Path) -> PictureSplit:
    """60,000 and 10,000 grey pictures of 28 x 28 pixels from four IDX files in `folder`, fetched where they lack."""
    files = {name: fetch(FASHION_URL + name, folder / name, md5, "md5") for name, md5 in FASHION_MD5.items()}
    arrays = [read_idx(name, content) for name, content in files.items()]
    return PictureSplit(*(Pictures(x[:, None], y.long()) for x, y in (arrays[:2], arrays[2:])))


def read_idx(name: str, content: bytes) -> UInt8[Tensor, "..."]:
    """An array of bytes in IDX: two zeros, 8 for bytes, the number of axes, each axis's size, the values."""
    try:
        raw = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{name} cannot be unpacked: {error}") from None
    axes = raw[3] if raw[:3] == b"\0\0\x08" else 0
    sizes = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes)]
    values = np.frombuffer(raw, dtype=np.uint8, offset=min(len(raw), 4 + 4 * axes))
    if not axes or values.size != np.prod(sizes):
        raise ValueError(f"{name}: expected an IDX file of bytes, got {len(raw):,} bytes that are none")
    return torch.from_numpy(values.reshape(sizes).copy())


def load_cifar10(folder: Path) -> PictureSplit:
    """Colour photographs of 32 x 32 pixels: from a copy as JPEG files in `folder`, or the public archive, fetched.

    The copy, cifar10-jpg.tar.xz, holds train/LABEL/NAME.jpg and test/LABEL/NAME.jpg; its test part is smaller.
    """
    if (folder / CIFAR_COPY).exists():
        return _read_jpeg_archive(folder / CIFAR_COPY)
    content = fetch(CIFAR_URL, folder / CIFAR_URL.rsplit("/", 1)[-1], CIFAR_SHA256, "sha256")
    parts: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".bin"):
                parts[member.name.rsplit("/", 1)[-1]] = archive.extractfile(member).read()  # type: ignore[union-attr]
    train = b"".join(parts[name] for name in sorted(parts) if name.startswith("data_batch"))
    return PictureSplit(_read_records(train), _read_records(parts["test_batch.bin"]))


def _read_records(content: bytes) -> Pictures:
    """A byte for the label, then 1,024 for each of red, green and blue."""
    records = torch.from_numpy(np.frombuffer(content, dtype=np.uint8).reshape(-1, 1 + 3 * 32 * 32).copy())
    return Pictures(records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].long())


def _read_jpeg_archive(path: Path) -> PictureSplit:
    parts: dict[str, list[tuple[str, int, np.ndarray]]] = {"train": [], "test": []}
    try:
        with tarfile.open(fileobj=io.BytesIO(lzma.decompress(path.read_bytes())), mode="r:") as archive:
            for member in archive:
                where = member.name.removeprefix("./").split("/")
                if member.isfile() and len(where) == 3 and where[0] in parts and where[1] in CIFAR_LABELS:
                    with Image.open(archive.extractfile(member)) as picture:  # type: ignore[arg-type]
                        pixels = np.asarray(picture.convert("RGB"))
                    parts[where[0]].append((member.name, CIFAR_LABELS.index(where[1]), pixels))
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise ValueError(f"{path.name} cannot be read, it may be cut short: {error}") from None
    if not all(parts.values()):
        raise ValueError(f"{path.name}: expected pictures train/LABEL/NAME.jpg and test/LABEL/NAME.jpg")
    return PictureSplit(*(_stack(sorted(part, key=lambda row: row[0])) for part in parts.values()))


def _stack(rows: list[tuple[str, int, np.ndarray]]) -> Pictures:
    pixels = torch.from_numpy(np.stack([row[2] for row in rows])).permute(0, 3, 1, 2).contiguous()
    return Pictures(pixels, torch.tensor([row[1] for row in rows]))


FASHION_LABELS = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
CIFAR_LABELS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

FASHION_MNIST = PictureSet(
    FASHION_LABELS,
    "Fashion-MNIST (Xiao, Rasul and Vollgraf 2017, https://github.com/zalandoresearch/fashion-mnist)",
    "MIT, Copyright (c) 2017 Zalando SE",
    "garment",
    load_fashion_mnist,
)
CIFAR10 = PictureSet(
    CIFAR_LABELS,
    "CIFAR-10 (Krizhevsky 2009, “Learning Multiple Layers of Features from Tiny Images”, "
    "https://www.cs.toronto.edu/~kriz/cifar.html)",
    "the data set states none; it is cited, and none of its pictures is included",
    "photograph",
    load_cifar10,
)
