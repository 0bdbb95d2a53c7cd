"""Small scenes with something that CIFAR-10 has a label for, and light and ground as in a photograph."""

from __future__ import annotations

from collections.abc import Callable

from PIL import Image

from recipes.drawings.brush import Canvas


def airplane() -> Image.Image:
    """An airliner above clouds."""
    canvas = Canvas((96, 150, 214), (190, 216, 238))
    for x, y, r in ((0.15, 0.8, 0.12), (0.28, 0.84, 0.15), (0.8, 0.2, 0.1), (0.9, 0.23, 0.13)):
        canvas.ellipse((x, y), (1.6 * r, 0.45 * r), (226, 236, 246))
    canvas.polygon([(0.46, 0.5), (0.6, 0.5), (0.4, 0.82), (0.33, 0.82)], (150, 158, 168))
    canvas.polygon([(0.48, 0.46), (0.58, 0.46), (0.46, 0.22), (0.4, 0.22)], (168, 176, 186))
    canvas.polygon([(0.12, 0.43), (0.2, 0.43), (0.14, 0.24), (0.08, 0.24)], (200, 60, 56))
    canvas.polygon(
        [(0.08, 0.44), (0.2, 0.42), (0.8, 0.43), (0.92, 0.49), (0.8, 0.54), (0.2, 0.53)], (236, 238, 240), 0.1
    )
    for i in range(9):
        canvas.ellipse((0.3 + 0.05 * i, 0.465), (0.009, 0.011), (70, 90, 120))
    return canvas.finish(4, 1)


def ship() -> Image.Image:
    """A ship at sea."""
    canvas = Canvas((150, 190, 226), (214, 228, 238))
    canvas.polygon([(0, 0.62), (1, 0.62), (1, 1), (0, 1)], (36, 84, 128), 0.1)
    for i in range(7):
        y = 0.68 + 0.045 * i
        canvas.line([(0.04 * i, y), (0.3 + 0.05 * i, y)], (60, 112, 156), 0.008)
        canvas.line([(0.6 + 0.03 * i, y + 0.02), (0.98, y + 0.02)], (54, 104, 148), 0.008)
    canvas.polygon([(0.08, 0.52), (0.94, 0.5), (0.84, 0.68), (0.16, 0.68)], (150, 44, 40), 0.2)
    canvas.polygon([(0.08, 0.52), (0.94, 0.5), (0.92, 0.55), (0.09, 0.56)], (236, 236, 236))
    canvas.polygon([(0.28, 0.51), (0.28, 0.36), (0.7, 0.36), (0.74, 0.51)], (240, 240, 238), 0.15)
    canvas.polygon([(0.36, 0.36), (0.36, 0.27), (0.58, 0.27), (0.6, 0.36)], (226, 228, 230), 0.15)
    canvas.polygon([(0.42, 0.27), (0.42, 0.14), (0.5, 0.14), (0.51, 0.27)], (200, 80, 50), 0.2)
    return canvas.finish(4, 2)


def automobile() -> Image.Image:
    """A red car by a field."""
    canvas = Canvas((196, 210, 222), (220, 226, 228))
    canvas.polygon([(0, 0.5), (1, 0.46), (1, 0.66), (0, 0.66)], (120, 140, 104))
    canvas.polygon([(0, 0.64), (1, 0.64), (1, 1), (0, 1)], (112, 112, 114), 0.1)
    canvas.ellipse((0.5, 0.83), (0.44, 0.035), (70, 70, 72))
    canvas.polygon([(0.26, 0.5), (0.36, 0.32), (0.66, 0.32), (0.8, 0.5)], (150, 20, 26), 0.1)
    canvas.polygon([(0.31, 0.49), (0.38, 0.36), (0.5, 0.36), (0.5, 0.49)], (150, 186, 206))
    canvas.polygon([(0.53, 0.49), (0.53, 0.36), (0.65, 0.36), (0.75, 0.49)], (130, 168, 190))
    canvas.polygon(
        [(0.06, 0.56), (0.14, 0.5), (0.88, 0.49), (0.95, 0.58), (0.95, 0.74), (0.06, 0.74)], (196, 28, 34), 0.2
    )
    for x in (0.24, 0.76):
        canvas.ellipse((x, 0.74), (0.1, 0.1), (28, 28, 30))
        canvas.ellipse((x, 0.74), (0.05, 0.05), (170, 172, 176))
    canvas.ellipse((0.92, 0.6), (0.02, 0.025), (250, 240, 190))
    return canvas.finish(4, 3)


def truck() -> Image.Image:
    """A truck on a road."""
    canvas = Canvas((170, 196, 220), (222, 228, 230))
    canvas.polygon([(0, 0.7), (1, 0.7), (1, 1), (0, 1)], (118, 116, 112), 0.1)
    canvas.polygon([(0.04, 0.24), (0.62, 0.22), (0.62, 0.72), (0.04, 0.72)], (232, 232, 228), 0.15)
    canvas.polygon(
        [(0.64, 0.38), (0.82, 0.38), (0.92, 0.54), (0.95, 0.56), (0.95, 0.74), (0.64, 0.74)], (40, 90, 160), 0.2
    )
    canvas.polygon([(0.72, 0.42), (0.81, 0.42), (0.89, 0.54), (0.72, 0.54)], (160, 196, 214))
    canvas.polygon([(0.04, 0.71), (0.95, 0.71), (0.95, 0.77), (0.04, 0.77)], (50, 50, 54))
    for x in (0.16, 0.32, 0.8):
        canvas.ellipse((x, 0.79), (0.075, 0.075), (26, 26, 28))
        canvas.ellipse((x, 0.79), (0.035, 0.035), (150, 150, 154))
    return canvas.finish(4, 4)


def frog() -> Image.Image:
    """A frog among leaves, from the front."""
    canvas = Canvas((96, 104, 70), (120, 112, 84))
    for i in range(12):
        canvas.ellipse((0.09 * i, 0.08 + 0.83 * ((i * 5) % 12) / 12), (0.09, 0.05), (84, 96, 58))
    canvas.ellipse((0.3, 0.78), (0.17, 0.07), (78, 122, 44))
    canvas.ellipse((0.72, 0.78), (0.17, 0.07), (72, 114, 42))
    canvas.ellipse((0.5, 0.6), (0.29, 0.23), (98, 152, 54), 0.25)
    canvas.ellipse((0.5, 0.66), (0.19, 0.13), (176, 190, 112), 0.1)
    canvas.ellipse((0.5, 0.44), (0.24, 0.15), (106, 162, 58), 0.2)
    for x in (0.34, 0.66):
        canvas.ellipse((x, 0.31), (0.075, 0.075), (116, 168, 62))
        canvas.ellipse((x, 0.31), (0.045, 0.045), (230, 196, 60))
        canvas.ellipse((x, 0.31), (0.028, 0.02), (16, 16, 12))
    canvas.line([(0.34, 0.49), (0.5, 0.53), (0.66, 0.49)], (60, 92, 34), 0.012)
    return canvas.finish(6, 5)


def cat() -> Image.Image:
    """A ginger cat, from the front."""
    canvas = Canvas((196, 176, 150), (150, 126, 100))
    fur, dark = (190, 124, 62), (134, 80, 36)
    canvas.ellipse((0.5, 0.98), (0.36, 0.32), fur, 0.25)
    canvas.polygon([(0.2, 0.08), (0.26, 0.46), (0.46, 0.26)], fur)
    canvas.polygon([(0.8, 0.08), (0.74, 0.46), (0.54, 0.26)], (176, 112, 56))
    canvas.polygon([(0.235, 0.16), (0.28, 0.4), (0.4, 0.27)], (222, 160, 140))
    canvas.polygon([(0.765, 0.16), (0.72, 0.4), (0.6, 0.27)], (214, 150, 130))
    canvas.ellipse((0.5, 0.47), (0.3, 0.26), fur, 0.2)
    for x in (0.42, 0.5, 0.58):
        canvas.line([(x, 0.23), (x + (0.5 - x) * 0.2, 0.35)], dark, 0.02)
    for y in (0.5, 0.57):
        canvas.line([(0.22, y), (0.3, y + 0.01)], dark, 0.015)
        canvas.line([(0.78, y), (0.7, y + 0.01)], dark, 0.015)
    canvas.ellipse((0.5, 0.6), (0.14, 0.1), (238, 222, 200), 0.1)
    for x in (0.38, 0.62):
        canvas.ellipse((x, 0.45), (0.06, 0.05), (160, 186, 70))
        canvas.ellipse((x, 0.45), (0.018, 0.045), (14, 14, 12))
    canvas.polygon([(0.465, 0.55), (0.535, 0.55), (0.5, 0.59)], (200, 110, 104))
    for y in (0.58, 0.62):
        canvas.line([(0.14, y - 0.02), (0.42, y)], (240, 236, 230), 0.006)
        canvas.line([(0.86, y - 0.02), (0.58, y)], (240, 236, 230), 0.006)
    return canvas.finish(5, 6)


SCENES: dict[str, Callable[[], Image.Image]] = {
    "airplane": airplane,
    "ship": ship,
    "automobile": automobile,
    "truck": truck,
    "frog": frog,
    "cat": cat,
}
"""Each draws one scene, by the name under which links ask for it."""
