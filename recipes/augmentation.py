"""Augmentation of pictures: shifted, rotated, zoomed, mirrored, recoloured, covered and mixed, by batch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Views:
    """Limits of the augmentation; each change is drawn uniformly for each picture."""

    shift: float = 0.1  # of the side, both ways
    zoom: float = 0.15  # of the scale, both ways
    turn: float = 10.0  # degrees, both ways
    mirror: bool = True  # left and right, every other time
    brightness: float = 0.0  # also contrast and colour; up and down
    cover: float = 0.25  # side of a square set to the mean, of the picture's


def random_views(
    X: Float[Tensor, "batch channels height width"], side: int, views: Views, generator: torch.Generator
) -> Float[Tensor, "batch channels side side"]:
    """Return one view of each normalised picture, of side x side pixels.

    Moving, turning, zooming, mirroring and resizing are one bilinear resampling, so nothing is blurred twice;
    what comes in from outside is a picture's own edge, repeated. All random numbers come from `generator`, on the
    CPU, so that a run is the same on every device.
    """
    n = X.shape[0]
    draw = (2 * torch.rand(8, n, generator=generator) - 1).to(X.device)
    angle = draw[0] * math.radians(views.turn)
    scale = 1 + draw[1] * views.zoom
    flip = torch.where(draw[4] < 0, -1.0, 1.0) if views.mirror else torch.ones_like(draw[4])
    cos, sin = angle.cos() * scale, angle.sin() * scale
    shift = 2 * views.shift * draw[2:4]  # the whole picture spans -1 to 1
    theta = torch.stack((flip * cos, -sin, shift[0], flip * sin, cos, shift[1]), dim=-1).reshape(n, 2, 3)
    grid = F.affine_grid(theta.to(X.dtype), [n, X.shape[1], side, side], align_corners=False)
    seen = F.grid_sample(X, grid, mode="bilinear", padding_mode="border", align_corners=False)
    if views.brightness:
        seen = _adjust(seen, 1 + views.brightness * draw[5:8, :, None, None, None], views.brightness * draw[5])
    return _cover(seen, views.cover, generator) if views.cover else seen


def mix(
    X: Float[Tensor, "batch channels height width"],
    targets: Float[Tensor, "batch classes"],
    generator: torch.Generator,
) -> tuple[Float[Tensor, "batch channels height width"], Float[Tensor, "batch classes"]]:
    """Mix each picture with its neighbour in the batch, and the labels in the same proportion.

    Half of the batches blend the two (mixup, Zhang 2018), the others paste a rectangle (CutMix, Yun 2019).
    """
    blend, share, row, column = torch.rand(4, generator=generator).tolist()
    other, other_targets = X.roll(1, dims=0), targets.roll(1, dims=0)
    if blend < 0.5:
        mixed, own_share = torch.lerp(other, X, share), share
    else:
        height, width = X.shape[-2:]
        tall, wide = round(height * math.sqrt(1 - share)), round(width * math.sqrt(1 - share))
        top, left = int(row * (height - tall + 1)), int(column * (width - wide + 1))
        mixed = X.clone()
        mixed[..., top : top + tall, left : left + wide] = other[..., top : top + tall, left : left + wide]
        own_share = 1 - tall * wide / (height * width)
    return mixed, torch.lerp(other_targets, targets, own_share)


def soft_targets(labels: Int[Tensor, " batch"], num_classes: int, smoothing: float) -> Float[Tensor, "batch classes"]:
    """(1 - eps) one_hot + eps / classes (Szegedy 2016, section 7)."""
    return F.one_hot(labels, num_classes).float() * (1 - smoothing) + smoothing / num_classes


def _adjust(seen: Tensor, factors: Tensor, brighter: Tensor) -> Tensor:
    """Change brightness, then contrast around the picture's mean, then saturation around each pixel's grey."""
    seen = seen + brighter[:, None, None, None]
    mean = seen.mean(dim=(1, 2, 3), keepdim=True)
    seen = mean + (seen - mean) * factors[1]
    grey = seen.mean(dim=1, keepdim=True)
    return grey + (seen - grey) * factors[2]


def _cover(seen: Tensor, part: float, generator: torch.Generator) -> Tensor:
    """A square of 0, the mean of all training pixels, somewhere in each picture (Cutout, DeVries and Taylor 2017)."""
    n, _, height, width = seen.shape
    centre = torch.rand(2, n, 1, 1, generator=generator).to(seen.device)
    rows = (torch.arange(height, device=seen.device)[:, None] + 0.5) / height
    columns = (torch.arange(width, device=seen.device)[None, :] + 0.5) / width
    hidden = ((rows - centre[0]).abs() < part / 2) & ((columns - centre[1]).abs() < part / 2)
    return seen.masked_fill(hidden[:, None], 0.0)
