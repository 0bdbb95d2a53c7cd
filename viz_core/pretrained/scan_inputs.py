"""Texts and pictures that ship for scans of heads."""

from PIL import Image

from viz_core.images.drawn import GARMENTS, SCENES, drawn_picture
from viz_core.images.fashion_mnist import shipped_pictures
from viz_core.pretrained.samples import held_out
from viz_core.runtime.assets import ASSETS, reading

SETS = ("narrow", "broad")
_NARROW = 120
_BROAD = ASSETS / "heads" / "broad.txt"


def scan_inputs(which: str, pictures: bool = False) -> tuple[str, ...]:
    """Return texts, or names of pictures for `scan_picture`.

    Narrow texts are held-out sentences as the shipped models were trained on; broad ones are passages of this project's
    README, licence, guide and code, as they were when they were chosen. Narrow pictures are test pictures of
    Fashion-MNIST; broad ones are drawn garments and scenes. ValueError if `which` is not one of `SETS`.
    """
    if which not in SETS:
        raise ValueError(f"which: expected one of {', '.join(SETS)}, got {which!r}")
    if pictures:
        return tuple(f"test-{i}" for i in range(_NARROW)) if which == "narrow" else (*GARMENTS, *SCENES)
    if which == "narrow":
        return tuple(sample.english for sample in held_out()[:_NARROW])
    with reading(_BROAD):
        return tuple(_BROAD.read_text(encoding="utf-8").splitlines())


def scan_picture(name: str) -> Image.Image:
    """Return the picture of this name."""
    if name.startswith("test-"):
        return Image.fromarray(shipped_pictures()[0][int(name.removeprefix("test-")), 0].numpy())
    return drawn_picture(name)
