"""The maps as a picture in HTML, for those who show a notebook without running scripts: nbconvert, GitHub, nbviewer."""

import base64
import html
import io

import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from viz_core.view.figure_caption import file_title
from viz_core.view.payload import View
from viz_core.view.state import ViewState, open_group
from viz_core.view.visible_map import heads_in_rows

_SIDE, _GAP, _DRAWN = 32, 2, 64  # cells of a thumbnail at most, cells between two, pixels of one


def static_picture(view: View, state: ViewState) -> str:
    """Return every head of the open kind as one picture, a row a layer: the darker, the larger the weight's root."""
    group = open_group(view.groups, state)
    layers = [_smaller(group.picture(number).thumbnails).numpy() for number in range(len(group.calls))]
    picture = Image.fromarray(255 - heads_in_rows(layers, _GAP, 0)[:-_GAP, :-_GAP])
    scale = max(1, _DRAWN // (max(layers[0].shape[1:]) + _GAP))
    content = io.BytesIO()
    drawn = picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST)
    drawn.save(content, "PNG", optimize=True)
    title = file_title(view, group, view.words["heads"])
    return (
        f'<img alt="{html.escape(title, quote=True)}" style="max-width: 100%" '
        f'src="data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}">'
    )


def _smaller(thumbnails: Tensor) -> Tensor:
    """Return the largest weight of each bin, at most so many on a side."""
    sides = [min(_SIDE, size) for size in thumbnails.shape[1:]]
    return F.adaptive_max_pool2d(thumbnails.float(), sides).to(thumbnails.dtype)
