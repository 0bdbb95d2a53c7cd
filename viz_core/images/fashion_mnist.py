"""Pictures of the test split of Fashion-MNIST that ship, under its licence (MIT)."""

import json
from functools import cache

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from viz_core.runtime.assets import ASSETS, reading

_SHEET = ASSETS / "samples" / "fashion-mnist-test"


@cache
def shipped_pictures() -> tuple[UInt8[Tensor, "n 1 side side"], tuple[int, ...]]:
    """The pictures, row by row of their sheet, and their labels. AssetError if their file is missing or damaged."""
    labels_file, drawn = _SHEET.with_suffix(".json"), _SHEET.with_suffix(".png")
    with reading(labels_file):
        about = json.loads(labels_file.read_text(encoding="utf-8"))
        side, labels = int(about["side"]), tuple(map(int, about["labels"]))
    with reading(drawn):
        sheet = torch.from_numpy(np.array(Image.open(drawn)))
        pictures = sheet.unfold(0, side, side).unfold(1, side, side).flatten(0, 1)
        return pictures[:, None].contiguous(), labels
