"""Tokens with places in a drawing: point at one, and what it attends to lights up, there and in the text.

A field, such as molecules, a picture or a sound, is one file in the folder fields. It turns its data into a `Drawing`:
panels of lines, labels and pictures, and the places of keys, then of queries. The component in assets/components/places
draws any of them and knows of none.
"""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from PIL import Image

Box = tuple[int, float, float, float, float]
"""Panel, left, top, width and height."""


@dataclass(frozen=True)
class Panel:
    """A part of a drawing, in pixels."""

    box: tuple[float, float, float, float]  # left, top, width and height of what is shown
    strokes: str = ""  # lines, as the path of an SVG
    # x, middle y, text, and its anchor: "start", "middle" or "end"
    labels: tuple[tuple[float, float, str, str], ...] = ()
    picture: Image.Image | None = None  # beneath all, over the whole box
    # draw the picture in the colour of text, the more opaque the brighter, instead of in its own colours
    inked: bool = False
    sign: str = ""  # what stands before the panel, like "+"; "" puts it right beside the last
    term: str = ""  # the part of the page's text that it belongs to


@dataclass(frozen=True)
class Place:
    """Where a token is: in boxes of the drawing, in the text below it, or in both."""

    name: str  # what a sentence calls it
    boxes: tuple[Box, ...] = ()  # it may lie in several panels
    token: int | None = None  # its number in the text
    masked: bool = False  # no query may attend to it


@dataclass(frozen=True)
class Drawing:
    """Panels, and the places of keys, then of queries.

    ValueError if a place is nowhere, outside its panel or the text, or two are at one token.
    """

    panels: tuple[Panel, ...]
    places: tuple[Place, ...]
    num_keys: int
    tokens: tuple[str, ...] = ()  # the text below the panels; one may have no place
    terms: tuple[str, ...] = ()  # of the page's text, that keys and queries belong to; none, or both
    round: bool = False  # places are circles with their weights as numbers, instead of boxes
    relative: bool = False  # shade by the share of a row's largest weight, where weights are too small to be seen

    def __post_init__(self) -> None:
        if not 0 < self.num_keys <= len(self.places):
            raise ValueError(f"num_keys: expected 1 to {len(self.places)}, got {self.num_keys}")
        used = [place.token for place in self.places if place.token is not None]
        if len(used) != len(set(used)) or not all(0 <= token < len(self.tokens) for token in used):
            raise ValueError(f"places: expected different tokens below {len(self.tokens)}, got {used}")
        for place in self.places:
            if place.token is None and not place.boxes:
                raise ValueError(f"places: expected a box or a token of {place.name}, got none")
            for number, x, y, width, height in place.boxes:
                left, top, across, down = self.panels[number].box
                inside = left <= x + 0.1 and x + width <= left + across + 0.1 and top <= y + 0.1
                if not (inside and y + height <= top + down + 0.1 and min(width, height) > 0):
                    raise ValueError(f"places: expected {place.name} inside of its panel, got {(x, y, width, height)}")


def encode_places(
    drawing: Drawing,
    weights: Float[np.ndarray, "queries keys"],
    words: Mapping[str, str],
    language: str,
    *,
    start: int = 0,
    truth: Sequence[Sequence[int]] = (),
    strongest: Sequence[int] = (),
    unclear: Sequence[int] = (),
    first_row: int | None = None,
) -> bytes:
    """Return what the component needs: a drawing and the weights of its queries.

    Args:
        words: sentences by name, of the group "places".
        start: the query that is chosen at first.
        truth: right keys of each query, where they are known.
        strongest: the key that each query is mapped to.
        unclear: the runner-up of each query that is marked as unclear; -1 of the others.
        first_row: of the text's first token in maps of it on the same page, whose rows then choose places.
    """
    expected = (len(drawing.places) - drawing.num_keys, drawing.num_keys)
    if weights.shape != expected:
        raise ValueError(f"weights: expected shape {expected}, got {weights.shape}")
    content = {
        "panels": [
            {
                "box": panel.box,
                "strokes": panel.strokes,
                "labels": panel.labels,
                "picture": panel.picture and _address(panel.picture),
                "inked": panel.inked,
                "sign": panel.sign,
                "term": panel.term,
            }
            for panel in drawing.panels
        ],
        "places": [vars(each) for each in drawing.places],
        "numKeys": drawing.num_keys,
        "tokens": drawing.tokens,
        "terms": drawing.terms,
        "round": drawing.round,
        "relative": drawing.relative,
        "weights": np.round(weights.astype(float), 4).tolist(),
        "truth": truth,
        "strongest": strongest,
        "unclear": unclear,
        "firstRow": first_row,
        "start": drawing.num_keys + start if len(weights) else None,
        "words": dict(words),
        "language": language,
    }
    return json.dumps(content, ensure_ascii=False).encode()


def _address(picture: Image.Image) -> str:
    """The picture as a PNG in a data: address."""
    file = io.BytesIO()
    picture.save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
