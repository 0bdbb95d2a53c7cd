"""Inputs of the chapter: tokens and the layer they go through."""

from dataclasses import dataclass
from functools import partial

import streamlit as st
from torch import Tensor

from serving.requests.models import ShippedTranslator
from ui.blocks.translation import read_or_keep, sentence_input, still_shown
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate_model, translator, translator_or_none
from ui.compute.slots import run_in_slot
from ui.text.translations import explain
from viz_core.attention import MultiHeadAttention
from viz_core.lessons.multi_head import (
    MultiHeadSteps,
    divisors,
    fresh_layer,
    multi_head_steps,
    random_tokens,
    resize_width,
    trained_input,
    trained_layer,
)
from viz_core.pretrained import CheckpointError, Translator
from viz_core.pretrained.token_vectors import Tokens, sentence_tokens

MODEL = "transformer-en-fr"
MAX_TOKENS, WIDEST, MAX_HEADS = 64, 512, 64
_WIDTH = 64


@dataclass(frozen=True, eq=False)
class LayerInputs:
    """The tokens, the layer they go through, and every tensor on the way."""

    tokens: Tokens
    layer: MultiHeadAttention
    steps: MultiHeadSteps
    note: str = ""  # where trained weights are from

    @property
    def inputs(self) -> Tensor:
        return self.steps.input

    @property
    def num_heads(self) -> int:
        return self.layer.num_heads

    @property
    def num_hiddens(self) -> int:
        return self.layer.W_q.out_features


@dataclass(frozen=True)
class LayerRequest:
    """What the controls ask for."""

    source: str
    text: str
    count: int
    block: int
    width: int
    heads: int
    sharpness: float
    seed: int


def layer_controls(chapter: Chapter) -> LayerRequest:
    """Draw the sentence and the number of heads, and behind "more" where tokens and weights come from."""
    controls = chapter.controls
    first = st.container(width=300)
    with st.container(width=140):
        heads = int(controls.number("heads", 1, MAX_HEADS, 8))
    text, count, block, width, sharpness, seed = "", 0, 2, 0, 2.0, 0
    with controls.more():
        chapter.contributions_choice()
        default = "sentence" if translator_or_none(MODEL) is None else "trained"
        source = controls.choice("source", ("trained", "sentence", "random"), default)
        if source == "trained":
            block = int(controls.choice("block", (1, 2, 3), 3)) - 1
        else:
            width = int(controls.number("width", 0, WIDEST, _WIDTH, 8))
            sharpness = controls.slider("sharpness", 0.0, 8.0, 2.0, 0.5)
            seed = int(controls.number("seed", 0, 999, 0))
    with first:
        if source == "random":
            count = int(controls.slider("tokens", 1, MAX_TOKENS, 12))
        else:
            text = sentence_input(chapter)
    return LayerRequest(source, text, count, block, width, heads, sharpness, seed)


def make_layer(chapter: Chapter, request: LayerRequest) -> LayerInputs | None:
    """Return the tokens and the layer; None, after a message, where they cannot be made."""
    source, text, width, heads = request.source, request.text, request.width, request.heads
    try:
        model = None if source == "random" else translator(MODEL)
    except CheckpointError as error:
        model = None
        if source == "trained":
            st.error(chapter.common("no-model", reason=explain(error)), icon=":material/inventory_2:")
            return None
    except ValueError as error:  # an absent device; the message names those there are
        st.error(explain(error), icon=":material/memory:")
        return None
    if source == "trained" and model is not None:
        width = model.model.encoder.num_hiddens
    width, heads = _split(chapter, width, heads)
    if source == "random":
        tokens = run_in_slot(lambda: random_tokens(request.count, width, request.seed), "multi-head")
    elif source == "trained":

        def through(text: str) -> Tokens:
            return evaluate_model(ShippedTranslator(MODEL), trained_input, text, request.block, MAX_TOKENS)

        tokens = read_or_keep(chapter, text, through)
    else:
        tokens = read_or_keep(
            chapter, text, lambda each: run_in_slot(lambda: _embedded(each, width, model), "multi-head")
        )
    if tokens.total > len(tokens.labels):
        st.warning(chapter.words("cut", total=f"{tokens.total:,}", most=MAX_TOKENS), icon=":material/content_cut:")
    if source == "trained" and model is not None:
        trained_heads = model.model.encoder.blocks[request.block].attention.num_heads
        note = chapter.words("trained", block=request.block + 1, width=width, own=trained_heads, heads=heads)
        make = partial(trained_layer, model, request.block, heads)
    else:
        note = ""
        make = partial(fresh_layer, width, heads, request.sharpness, request.seed)
    return run_in_slot(lambda: _walk(tokens, make(), note), "multi-head")


def _walk(tokens: Tokens, layer: MultiHeadAttention, note: str) -> LayerInputs:
    return LayerInputs(tokens, layer, multi_head_steps(layer, tokens.X[None]), note)


def _split(chapter: Chapter, width: int, heads: int) -> tuple[int, int]:
    """Return a width, and a number of heads that divides it: the nearest fewer where these do not, after a warning."""
    if width == 0:
        width = _WIDTH
        still_shown(chapter.words("no-width"), str(width))
    divides = divisors(width)
    possible = [h for h in divides if h <= MAX_HEADS]
    if heads in possible:
        return width, heads
    values = {"heads": heads, "width": width, "possible": list(map(str, divides)), "most": MAX_HEADS}
    name = "not-divisible" if len(possible) == len(divides) else "not-divisible-here"
    fewer = max(h for h in possible if h < heads)
    labels = {h: chapter.words("use-heads", heads=h) for h in (fewer, *[h for h in possible if h > heads][:1])}
    still_shown(chapter.words(name, **values), labels[fewer])
    key = chapter.controls.key("heads")
    with st.container(horizontal=True):
        for h, label in labels.items():
            st.button(label, key=f"{key}-{h}", on_click=st.session_state.update, args=({key: h},))
    return width, fewer


def _embedded(text: str, width: int, model: Translator | None) -> Tokens:
    """The words in the model's embedding (random vectors without a model), resized to this width."""
    tokens = sentence_tokens(text, MAX_TOKENS, width, model)
    X = resize_width(tokens.X, width)
    return Tokens(tokens.labels, X, tokens.height, tokens.width, tokens.total)
