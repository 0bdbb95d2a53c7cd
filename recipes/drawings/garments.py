"""Garments on a shop's white background: one for several labels of Fashion-MNIST."""

from __future__ import annotations

from collections.abc import Callable

from PIL import Image

from recipes.drawings.brush import Canvas

_PAPER = (250, 250, 249)


def trouser() -> Image.Image:
    """Blue trousers, spread out."""
    canvas = Canvas(_PAPER)
    leg = [(0.36, 0.04), (0.33, 0.3), (0.31, 0.97), (0.45, 0.97), (0.485, 0.36), (0.5, 0.36)]
    canvas.polygon(canvas.mirrored(leg), (52, 74, 110), 0.2)
    canvas.polygon([(0.36, 0.04), (0.64, 0.04), (0.645, 0.09), (0.355, 0.09)], (38, 55, 84))
    canvas.line([(0.5, 0.09), (0.5, 0.36)], (34, 48, 74), 0.008)
    return canvas.finish()


def t_shirt() -> Image.Image:
    """A red T-shirt from the front."""
    canvas = Canvas(_PAPER)
    body = [(0.4, 0.06), (0.3, 0.09), (0.05, 0.27), (0.15, 0.43), (0.28, 0.35), (0.28, 0.95)]
    canvas.polygon(canvas.mirrored(body), (196, 62, 54), 0.15)
    canvas.ellipse((0.5, 0.05), (0.11, 0.07), _PAPER)
    return canvas.finish()


def pullover() -> Image.Image:
    """A green pullover with its sleeves hanging."""
    canvas = Canvas(_PAPER)
    sleeve = [(0.3, 0.1), (0.14, 0.2), (0.05, 0.6), (0.03, 0.92), (0.15, 0.94), (0.2, 0.62), (0.27, 0.4)]
    canvas.polygon(sleeve, (88, 112, 96))
    canvas.polygon([(1 - x, y) for x, y in sleeve], (80, 102, 88))
    canvas.polygon(canvas.mirrored([(0.4, 0.07), (0.29, 0.1), (0.26, 0.4), (0.27, 0.94)]), (98, 124, 106), 0.15)
    canvas.ellipse((0.5, 0.07), (0.1, 0.045), (64, 84, 72))
    canvas.polygon([(0.27, 0.88), (0.73, 0.88), (0.73, 0.94), (0.27, 0.94)], (74, 96, 82))
    return canvas.finish()


def dress() -> Image.Image:
    """A purple dress with a belt."""
    canvas = Canvas(_PAPER)
    half = [(0.42, 0.03), (0.37, 0.05), (0.35, 0.2), (0.4, 0.4), (0.36, 0.62), (0.27, 0.97)]
    canvas.polygon(canvas.mirrored(half), (150, 60, 110), 0.2)
    canvas.polygon(canvas.mirrored([(0.43, 0.02), (0.5, 0.12)]), _PAPER)
    canvas.polygon([(0.395, 0.38), (0.605, 0.38), (0.6, 0.43), (0.4, 0.43)], (104, 36, 74))
    return canvas.finish()


def bag() -> Image.Image:
    """A brown handbag."""
    canvas = Canvas(_PAPER)
    canvas.ellipse((0.5, 0.38), (0.23, 0.28), (112, 70, 40))
    canvas.ellipse((0.5, 0.4), (0.17, 0.22), _PAPER)
    canvas.polygon([(0.1, 0.4), (0.9, 0.4), (0.95, 0.9), (0.05, 0.9)], (140, 88, 50), 0.2)
    canvas.polygon([(0.1, 0.4), (0.9, 0.4), (0.86, 0.6), (0.14, 0.6)], (118, 72, 40), 0.2)
    canvas.ellipse((0.5, 0.6), (0.04, 0.04), (220, 190, 120))
    return canvas.finish()


def ankle_boot() -> Image.Image:
    """A brown ankle boot, its toe to the left as in Fashion-MNIST."""
    canvas = Canvas(_PAPER)
    upper = [
        (0.88, 0.12),
        (0.53, 0.1),
        (0.48, 0.42),
        (0.34, 0.54),
        (0.12, 0.62),
        (0.05, 0.76),
        (0.9, 0.78),
        (0.87, 0.5),
    ]
    canvas.polygon(upper, (92, 62, 42), 0.25)
    canvas.polygon([(0.91, 0.76), (0.04, 0.75), (0.05, 0.83), (0.6, 0.83), (0.62, 0.9), (0.91, 0.9)], (40, 28, 22))
    canvas.line([(0.7, 0.11), (0.67, 0.45)], (60, 40, 28), 0.02)
    return canvas.finish()


def sneaker() -> Image.Image:
    """A blue sneaker, its toe to the right."""
    canvas = Canvas(_PAPER)
    upper = [
        (0.05, 0.38),
        (0.16, 0.36),
        (0.28, 0.44),
        (0.46, 0.36),
        (0.66, 0.52),
        (0.92, 0.58),
        (0.97, 0.68),
        (0.05, 0.7),
    ]
    canvas.polygon(upper, (70, 110, 160), 0.1)
    canvas.polygon([(0.04, 0.66), (0.97, 0.66), (0.96, 0.74), (0.06, 0.74)], (214, 214, 210))
    canvas.polygon([(0.3, 0.62), (0.52, 0.44), (0.57, 0.48), (0.4, 0.64)], (226, 226, 222))
    for i in range(4):
        canvas.line([(0.45 + 0.05 * i, 0.39 + 0.035 * i), (0.39 + 0.06 * i, 0.45 + 0.03 * i)], (236, 236, 232), 0.012)
    return canvas.finish()


def sandal() -> Image.Image:
    """A sandal, its toe to the right."""
    canvas = Canvas(_PAPER)
    canvas.polygon(
        [
            (0.04, 0.5),
            (0.14, 0.5),
            (0.5, 0.68),
            (0.95, 0.7),
            (0.95, 0.76),
            (0.46, 0.76),
            (0.13, 0.62),
            (0.12, 0.78),
            (0.05, 0.78),
        ],
        (60, 44, 36),
    )
    canvas.line([(0.62, 0.71), (0.7, 0.55), (0.86, 0.71)], (120, 80, 50), 0.05)
    canvas.line([(0.16, 0.52), (0.2, 0.34), (0.36, 0.58)], (120, 80, 50), 0.04)
    return canvas.finish()


GARMENTS: dict[str, Callable[[], Image.Image]] = {
    "ankle-boot": ankle_boot,
    "t-shirt": t_shirt,
    "trouser": trouser,
    "dress": dress,
    "pullover": pullover,
    "bag": bag,
    "sneaker": sneaker,
    "sandal": sandal,
}
"""Each draws one garment, by the name under which links ask for it."""
