"""What every scheme is shown on: the tokens, the attention layer, the opened head and the quantity shown."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.blocks.over_picture import weights_image
from ui.blocks.translation import read_or_keep, sentence_input
from ui.chapter.chapter import Chapter
from ui.chapter.contents import page, page_file
from ui.compute.models import translator_or_none
from ui.text.model_card import model_title
from viz_core.lessons.position_embeddings.order import (
    LearnedTable,
    SharedLayer,
    picture,
    picture_tokens,
    shipped_position_tables,
)
from viz_core.models.vit import resize_grid
from viz_core.positional.entry import SchemeEntry, SchemeSizes
from viz_core.pretrained import Translator
from viz_core.pretrained.token_vectors import Tokens, sentence_tokens

MODEL = "transformer-en-fr"
WIDTH = 256  # of tokens without the model, and of pictures; the model's own is the same
MAX_TOKENS = 64
HEADS = (1, 2, 4, 8)
# The chapter about the model that has learned the words or the table.
WHERE_TRAINED = {"words": "transformer", "table": "vision-transformer", "nothing": "vision-transformer"}
ROUNDING = 1e-5  # rounding of float32 in sums of a few hundred terms


@dataclass(frozen=True, eq=False)
class TokenInputs:
    """The tokens and the layer the reader chose, the opened head, and which quantity is shown of it.

    Attributes:
        quantity: "added" (what positions add to the scores), "scores" or "weights".
        trained: what of all this a shipped model has learned: the "words", the "table" of positions, or "nothing".
        model: the name of that model.
        typed: the tokens before one of them was put at every position.
    """

    tokens: Tokens
    layer: SharedLayer
    head: int
    quantity: str
    trained: str
    model: str
    typed: Tokens

    @property
    def as_typed(self) -> TokenInputs:
        """The same with the tokens as they were typed, for experiments that need different words."""
        return replace(self, tokens=self.typed, layer=replace(self.layer, X=self.typed.X))

    def map_of(self, scheme: SchemeEntry) -> np.ndarray:
        """The chosen quantity under a scheme, for the opened head."""
        compute = {"added": self.layer.position_scores, "scores": self.layer.scores, "weights": self.layer.weights}[
            self.quantity
        ]
        return compute(scheme)[self.head].numpy()


def choose_tokens(chapter: Chapter, place: DeltaGenerator, notes: DeltaGenerator) -> TokenInputs:
    """Controls for the sentence or the picture, in its place, the heads and the quantity."""
    controls = chapter.controls
    with controls.more():
        source = controls.choice("source", ("one-word", "sentence", "picture"), "one-word")
        model = None if source == "picture" else translator_or_none(MODEL)
        picture_shown = _picture(chapter) if source == "picture" else None
        quantity = controls.choice("show", ("added", "scores", "weights"), "added")
        heads = controls.choice("heads", HEADS, 8)
        head = int(controls.number("head", 1, heads, 1)) - 1
        per_head = controls.toggle("per-head")
        seed = int(controls.number("seed", 0, 999, 0))
    tokens = _sentence(chapter, place, notes, model) if picture_shown is None else picture_shown
    if tokens.total > len(tokens.labels):
        notes.warning(chapter.words("cut", total=f"{tokens.total:,}", most=MAX_TOKENS), icon=":material/content_cut:")
    typed, tokens = tokens, tokens.one_word() if source == "one-word" else tokens
    n, d = tokens.X.shape
    sizes = SchemeSizes(n, d, heads, tokens.height, tokens.width, per_head=per_head)
    learned = shipped_table() if source == "picture" else None
    if learned is not None:
        side = math.isqrt(len(learned.positions))
        table = resize_grid(learned.positions, (side, side), (tokens.height, tokens.width))
        layer = SharedLayer(tokens.X, sizes, table, seed)
        return TokenInputs(tokens, layer, head, quantity, "table", model_title(learned.card), typed)
    trained = ("nothing", "") if model is None else ("words", model_title(model.card))
    return TokenInputs(tokens, SharedLayer(tokens.X, sizes, seed=seed), head, quantity, *trained, typed)


def _sentence(chapter: Chapter, place: DeltaGenerator, notes: DeltaGenerator, model: Translator | None) -> Tokens:
    """The shipped translator's tokens; words with random vectors where it is missing."""
    with place:
        text = sentence_input(chapter)
    with notes:
        return read_or_keep(chapter, text, lambda each: sentence_tokens(each, MAX_TOKENS, WIDTH, model))


def _picture(chapter: Chapter) -> Tokens:
    sides, preview = st.columns([3, 1], gap="medium")
    with sides:
        height = int(chapter.controls.slider("height", 1, 8, 5))
        width = int(chapter.controls.slider("width", 1, 8, 7))
    preview.image(weights_image(picture(height, width), side=240, root=False), alt=chapter.words("alt.picture"))
    table = shipped_table()
    return picture_tokens(height, width, WIDTH if table is None else table.positions.shape[1])


def link_to(chapter: str) -> None:
    """A link to a chapter, where it exists."""
    if page_file(chapter).is_file():
        st.page_link(page(chapter), icon=":material/arrow_forward:")


@st.cache_resource(max_entries=1, show_spinner=False)
def shipped_table() -> LearnedTable | None:
    """The learned positions of the first shipped picture model, if every number of heads divides its width."""
    table = next(iter(shipped_position_tables()), None)
    return table if table is not None and table.positions.shape[1] % (2 * max(HEADS)) == 0 else None
