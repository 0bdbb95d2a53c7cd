"""What is asked of every scheme: the tokens, the layer they meet, the opened head and what is shown of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from ui.blocks.sentence import sentence_input
from ui.chapter.chapter import Chapter
from ui.chapter.contents import page, page_file
from ui.compute.models import translator_or_none
from ui.text.model_names import model_title
from viz_core.figures.raster import weights_image
from viz_core.lessons.position_embeddings.picture_tokens import (
    LearnedTable,
    picture,
    picture_tokens,
    shipped_position_table,
)
from viz_core.lessons.position_embeddings.schemes import Scheme
from viz_core.lessons.position_embeddings.setting import Setting, Sizes
from viz_core.models.patch_grid import resize_grid
from viz_core.pretrained import Translator
from viz_core.pretrained.token_vectors import Tokens, sentence_tokens

MODEL = "transformer-en-fr"
WIDTH = 256  # of tokens without the model, and of pictures; the model's own is the same
MOST_TOKENS = 64
HEADS = (1, 2, 4, 8)
# The chapter about the model that has learned what is shown, by what that is.
WHERE_TRAINED = {"words": "transformer", "table": "vision-transformer", "nothing": "vision-transformer"}
ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms


@dataclass(frozen=True, eq=False)
class Asked:
    """The tokens and the layer the reader asks to see, the opened head, and what of it is shown.

    Attributes:
        typed: the tokens before one of them was put at every place.
        trained: what of all this some shipped model has learned: the "words", the "table" of positions, or "nothing".
        model: what that model is called.
    """

    tokens: Tokens
    setting: Setting
    head: int
    shown: str
    trained: str
    model: str
    typed: Tokens

    @property
    def as_typed(self) -> Asked:
        """The same with the tokens as they were typed: for what needs words that differ."""
        return replace(self, tokens=self.typed, setting=replace(self.setting, X=self.typed.X))

    def shown_map(self, scheme: Scheme) -> np.ndarray:
        """What is shown of a scheme, for the opened head."""
        show = {"added": scheme.position_scores, "scores": scheme.scores, "weights": scheme.weights}[self.shown]
        return show(self.setting)[self.head].numpy()


def ask(chapter: Chapter) -> Asked | None:
    """The sentence or the picture, the heads and what to show; None where there are no tokens yet."""
    controls = chapter.controls
    with chapter.card("ask"):
        first, second = st.columns([2, 3], gap="medium")
        with first:
            source = controls.choice("source", ("one-word", "sentence", "picture"), "one-word")
        with second:
            model = None if source == "picture" else translator_or_none(MODEL)
            tokens = _picture(chapter) if source == "picture" else _sentence(chapter, model)
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            shown = controls.choice("show", ("added", "scores", "weights"), "added")
            heads = controls.choice("heads", HEADS, 8)
            head = int(controls.number("head", 1, heads, 1)) - 1
            with controls.more():
                per_head = controls.toggle("per-head")
                seed = int(controls.number("seed", 0, 999, 0))
    if not tokens.labels:
        st.info(chapter.words("empty"), icon=":material/edit:")
        return None
    if tokens.total > len(tokens.labels):
        st.warning(chapter.words("cut", total=f"{tokens.total:,}", most=MOST_TOKENS), icon=":material/content_cut:")
    typed, tokens = tokens, tokens.one_word() if source == "one-word" else tokens
    n, d = tokens.X.shape
    sizes = Sizes(n, d, heads, tokens.height, tokens.width, per_head=per_head)
    learned = shipped_table() if source == "picture" else None
    if learned is not None:
        side = math.isqrt(len(learned.positions))
        table = resize_grid(learned.positions, (side, side), (tokens.height, tokens.width))
        return Asked(tokens, Setting(tokens.X, sizes, table, seed), head, shown, "table", learned.model, typed)
    trained = ("nothing", "") if model is None else ("words", model_title(model.card))
    return Asked(tokens, Setting(tokens.X, sizes, seed=seed), head, shown, *trained, typed)


def _sentence(chapter: Chapter, model: Translator | None) -> Tokens:
    """The shipped translator's tokens; without it words with random vectors do as well."""
    return sentence_tokens(sentence_input(chapter), MOST_TOKENS, WIDTH, model)


def _picture(chapter: Chapter) -> Tokens:
    sides, shown = st.columns([3, 1], gap="medium")
    with sides:
        height = int(chapter.controls.slider("height", 1, 8, 5))
        width = int(chapter.controls.slider("width", 1, 8, 7))
    shown.image(weights_image(picture(height, width), side=240, root=False), alt=chapter.words("alt.picture"))
    table = shipped_table()
    return picture_tokens(height, width, WIDTH if table is None else table.positions.shape[1])


def link_to(chapter: str) -> None:
    """A link to a chapter, where it exists."""
    if page_file(chapter).is_file():
        st.page_link(page(chapter), icon=":material/arrow_forward:")


@st.cache_resource(max_entries=1, show_spinner=False)
def shipped_table() -> LearnedTable | None:
    """The learned positions of the shipped picture model, where one ships whose width all numbers of heads divide."""
    table = shipped_position_table()
    return table if table is not None and table.positions.shape[1] % (2 * max(HEADS)) == 0 else None
