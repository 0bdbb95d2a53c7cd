"""The cards of the home page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import streamlit as st
import torch
from einops import rearrange
from PIL import Image
from torch import Tensor

from ui.chapter import Chapter
from ui.contents import page
from ui.models import translation_maps
from ui.vision_models import picture_look, picture_model, sample
from ui.words import ENGLISH
from viz_core.architectures import LayerSizes
from viz_core.architectures.paths import path_matrix
from viz_core.attention import gaussian, masked_softmax, nadaraya_watson
from viz_core.figures.raster import signed_image, weights_image
from viz_core.figures.translation import aligning_head
from viz_core.lookup import BOOK_DATABASE, soft_lookup
from viz_core.noisy_points import SPAN, noisy_points
from viz_core.positional import relative_projection, sinusoidal_table
from viz_core.positional.scheme_costs import Sizes
from viz_core.positional.schemes import BY_NAME, Setting
from viz_core.pretrained import available
from viz_core.samples import sentences


def _alignment(model: str, sample_id: str) -> Image.Image:
    """The head that aligns French and English, on one of the long samples."""
    text = next(sample.english for sample in sentences() if sample.id == sample_id)
    groups = translation_maps(model, text, 1, ENGLISH)
    view = aligning_head(groups)
    return weights_image(groups[-1].calls[view.layer].weights(head=view.head)[0].numpy())


def _sinusoidal_table() -> Image.Image:
    """A table as wide as a card is, so that none of it is cut off."""
    return signed_image(sinusoidal_table(40, 64).numpy(), 1.0)


def _relative_projection() -> Image.Image:
    """The matrix that moves positions by five."""
    return signed_image(relative_projection(5, 16).float().numpy(), 1.0)


def _relative_scores() -> Image.Image:
    """What relative positions add to the scores of one word, repeated: one value an offset."""
    line = Setting(torch.ones(24, 32), Sizes(24, 32, 1, 1, 24))
    scores = BY_NAME["relative"].position_scores(line)[0]
    return signed_image(scores.numpy(), float(scores.abs().max()))


def _masked_softmax() -> Image.Image:
    """Each query may see one key more than the one before it: the rows share their weight among more and more."""
    queries, keys = torch.arange(20.0)[:, None], torch.arange(20.0)
    scores = 2 * torch.cos(0.9 * (queries - keys)) - 0.15 * (queries - keys).abs()
    weights = masked_softmax(scores[None], torch.arange(1, 21)[None])[0]
    return weights_image((weights / weights.amax(dim=-1, keepdim=True)).numpy())


def _names() -> Image.Image:
    """Every name of the book's table looked up softly among all."""
    keys = [key for key, _ in BOOK_DATABASE]
    return weights_image(soft_lookup(keys, keys, 0.3).float().numpy())


def _kernel_weights() -> Image.Image:
    """What each of 40 queries gives to each of 40 points, in order."""
    x, y = noisy_points(40)
    queries = torch.linspace(0, SPAN, 40, dtype=torch.float64)
    _, weights = nadaraya_watson(x, y, queries, gaussian(0.5))
    return weights_image((weights / weights.max()).float().numpy(), root=False)


def _all_heads() -> Image.Image:
    """Every head of the encoder on the first long sample, four rows of six."""
    text = next(sample.english for sample in sentences() if sample.id == "cat")
    encoder = translation_maps("transformer-en-fr", text, 1, ENGLISH)[0]
    heads = torch.cat([call.weights()[0] for call in encoder.calls])
    return weights_image(_tiles(heads, columns=6).numpy())


def _path_lengths() -> Image.Image:
    """How far every token is from every other: recurrence, convolutions, restricted and full self-attention."""
    sizes, narrow = LayerSizes(20, 8, 3, 5), LayerSizes(20, 8, 2, 5)
    kinds = [("recurrent", sizes), ("convolution", sizes), ("restricted", sizes)]
    kinds += [("dilated", narrow), ("dilated", sizes), ("attention", sizes)]
    lengths = torch.stack([path_matrix(name, size) for name, size in kinds])
    return weights_image(_tiles(lengths / lengths.amax(), columns=3).numpy())


def _tiles(maps: Tensor, columns: int) -> Tensor:
    """Maps (count, n, n) laid out in rows, one empty cell between neighbours."""
    apart = torch.nn.functional.pad(maps, (0, 1, 0, 1))
    return rearrange(apart, "(row column) i j -> (row i) (column j)", column=columns)[:-1, :-1]


def _fingerprints() -> Image.Image:
    """Layer by head, how widely each looks: of a shipped model, for those of the lab take long to load."""
    text = next(sample.english for sample in sentences() if sample.id == "letter")
    groups = translation_maps("transformer-en-fr", text, 1, ENGLISH)
    layers = [group.picture(layer).fingerprints for group in groups for layer in range(len(group.calls))]
    spread = np.array([[head.entropy for head in layer] for layer in layers], dtype=np.float32)
    return weights_image(spread / spread.max(), root=False)


def _looking() -> Image.Image:
    """What the class token looks at on a drawn boot, all heads of three layers."""
    picture = sample("ankle-boot")
    maps: Tensor = picture_look(picture_model("vit-fashion-mnist"), picture, "token-attention", 0)[1:4].flatten(0, 1)
    return weights_image(_tiles(maps / maps.amax(dim=(1, 2), keepdim=True), columns=6).numpy(), root=False)


# A chapter's picture, computed now.
PICTURES: dict[str, Callable[[], Image.Image]] = {
    "architectures": _path_lengths,
    "attention-pooling": _kernel_weights,
    "bahdanau": partial(_alignment, "bahdanau-en-fr", "letter"),
    "model-lab": _fingerprints,
    "multi-head": _all_heads,
    "position-embeddings": _relative_scores,
    "queries-keys-values": _names,
    "relative-projection": _relative_projection,
    "scoring-functions": _masked_softmax,
    "sinusoidal-encoding": _sinusoidal_table,
    "transformer": partial(_alignment, "transformer-en-fr", "cat"),
    "vision-transformer": _looking,
}


def chapter_card(home: Chapter, name: str) -> None:
    """A chapter's live picture, its name as a link and a line about it."""
    with st.container(border=True, width=300, key=f"card-{name}"):
        try:
            picture = PICTURES[name]()
        except ValueError:  # no model or no device; the sidebar and the list below say which
            picture = weights_image(np.zeros((1, 1), dtype=np.float32))
        st.image(picture, width="stretch", alt=home.words(f"alt.{name}"))
        st.page_link(page(name), icon=":material/arrow_forward:")
        st.caption(home.words(f"teaser.{name}"))


def model_list(home: Chapter) -> None:
    """The shipped models with their scores, and where they run."""
    cards = available()
    if not cards:
        st.info(home.words("no-models"), icon=":material/inventory_2:")
    for card in cards:
        # Every score, under the name by which the words of its task ask for it.
        scores = {name.removeprefix("bleu_").removesuffix("_4"): f"{score:.1f}" for name, score in card.scores.items()}
        parameters = f"{card.config['parameters'] / 1e6:.1f} M"
        words = "picture-model" if card.task == "classification" else "model"
        st.markdown(home.words(words, title=card.title, parameters=parameters, licence=card.licence, **scores))
    home.device()
