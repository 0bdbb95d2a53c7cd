"""The maps as a picture in HTML, for those who show a notebook without running scripts: nbconvert, GitHub, nbviewer."""

import base64
import html
import io

import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from viz_core.view.figure_caption import file_title, opened_group
from viz_core.view.payload import View
from viz_core.view.state import ViewState

_SIDE, _GAP, _DRAWN = 32, 2, 64  # cells of a thumbnail at most, cells between two, pixels of one


def static_picture(view: View, state: ViewState) -> str:
    """Return every head of the open kind as one picture, a row a layer: the darker, the larger the weight's root."""
    group = opened_group(view, state)
    layers = [_smaller(group.picture(number).thumbnails) for number in range(len(group.calls))]
    rows, columns = (size + _GAP for size in layers[0].shape[1:])
    size = columns * max(len(layer) for layer in layers) - _GAP, rows * len(layers) - _GAP
    picture = Image.new("L", size, 255)
    for i, layer in enumerate(layers):
        for j, weights in enumerate(layer):
            picture.paste(Image.fromarray(255 - weights.numpy()), (j * columns, i * rows))
    scale = max(1, _DRAWN // max(rows, columns))
    content = io.BytesIO()
    picture.resize((size[0] * scale, size[1] * scale), Image.Resampling.NEAREST).save(content, "PNG", optimize=True)
    title = file_title(view, group, view.words["heads"])
    return (
        f'<img alt="{html.escape(title, quote=True)}" style="max-width: 100%" '
        f'src="data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}">'
    )


def _smaller(thumbnails: Tensor) -> Tensor:
    """Return the largest weight of each bin, at most so many on a side."""
    sides = [min(_SIDE, size) for size in thumbnails.shape[1:]]
    return F.adaptive_max_pool2d(thumbnails.float(), sides).to(thumbnails.dtype)
