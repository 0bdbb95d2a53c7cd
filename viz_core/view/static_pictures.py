"""Pictures of a view for readers that run no scripts: an exported notebook, or one on GitHub."""

import base64
import html
import io
import warnings
from collections.abc import Sequence
from importlib.util import find_spec

import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.state import ViewState, open_group
from viz_core.view.visible_map import file_title, heads_in_rows

_DRAWN = 64  # the open map has a picture of its own with no more tokens on a side
_SIDE, _GAP, _PIXELS = 32, 2, 64  # cells of a thumbnail at most, cells between two, pixels of one


def static_forms(view: View, state: ViewState) -> dict[str, str]:
    """Pictures of the open map (if it is short and figures are installed) and of every head of its kind.

    They are what a notebook shows that runs no scripts: as HTML on a page of nbconvert, and as one PNG where HTML is
    taken out or cleaned of the addresses that hold the pictures, as in GitHub's viewer.
    """
    group = open_group(view.groups, state)
    pictures = [(file_title(view, group, view.words["heads"]), _thumbnails(group))]
    if find_spec("matplotlib") is not None and max(len(group.query_tokens), len(group.key_tokens)) <= _DRAWN:
        from viz_core.view.matplotlib_figure import map_figure

        with warnings.catch_warnings(action="ignore"):  # of a token that no font can write
            figure = map_figure(view, state)
            drawn = Image.open(io.BytesIO(figure._repr_png_()))
        title = " | ".join(filter(None, (axes.get_title() for axes in figure.axes)))
        pictures.insert(0, (title, drawn.convert("RGB")))
    page = "".join(
        f'<img alt="{html.escape(title, quote=True)}" style="max-width: 100%"'
        f' src="data:image/png;base64,{_encoded(each)}">'
        for title, each in pictures
    )
    return {"text/html": page, "image/png": _encoded(_stacked([each for _, each in pictures]))}


def _stacked(pictures: Sequence[Image.Image]) -> Image.Image:
    """One picture of several, each below the one before."""
    width, height = max(each.width for each in pictures), sum(each.height for each in pictures)
    whole = Image.new("RGB", (width, height), "white")
    top = 0
    for each in pictures:
        whole.paste(each, (0, top))
        top += each.height
    return whole


def _thumbnails(group: MapGroup) -> Image.Image:
    """Every head as a thumbnail, a row a layer: the darker, the larger the weight's root."""
    layers = [_smaller(group.picture(number).thumbnails).numpy() for number in range(len(group.calls))]
    picture = Image.fromarray(255 - heads_in_rows(layers, _GAP, 0)[:-_GAP, :-_GAP])
    scale = max(1, _PIXELS // (max(layers[0].shape[1:]) + _GAP))
    return picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST)


def _smaller(thumbnails: Tensor) -> Tensor:
    """Return the largest weight of each bin, at most so many on a side."""
    sides = [min(_SIDE, size) for size in thumbnails.shape[1:]]
    return F.adaptive_max_pool2d(thumbnails.float(), sides).to(thumbnails.dtype)


def _encoded(picture: Image.Image) -> str:
    content = io.BytesIO()
    picture.save(content, "PNG", optimize=True)
    return base64.b64encode(content.getvalue()).decode()
