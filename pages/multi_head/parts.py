"""The multi-head chapter's parts: the layer asked for, its maps, the flow of shapes, costs, the two ways to compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import streamlit as st
from torch import Tensor

from asking.model_spec import Shipped
from pages.multi_head import figures
from ui.chapter import Chapter
from ui.compute import computed
from ui.controls import escape
from ui.models import runner, translator
from ui.stopwatch import Run, stopwatch
from viz_core.attention import MultiHeadAttention
from viz_core.figures.heatmap import signed_heatmap
from viz_core.lessons.multi_head.costs import PUBLISHED_BLEU, MultiHeadCost, divisors, multi_head_cost
from viz_core.lessons.multi_head.inputs import fresh_layer, random_tokens, resize_width, trained_layer
from viz_core.lessons.multi_head.steps import MultiHeadSteps, multi_head_steps, one_head_at_a_time, rounding_bound
from viz_core.pretrained import CheckpointError, TextError, Translator
from viz_core.pretrained.samples import sentences
from viz_core.pretrained.token_vectors import Tokens, sentence_tokens
from viz_core.runtime.stopwatch import measure
from viz_core.view.map_group import MapGroup

MODEL = "transformer-en-fr"
MOST_TOKENS, WIDEST, MOST_HEADS = 64, 512, 64
ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms
_TIMED_TOKENS = 128
_MORE_HEADS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, eq=False)
class Asked:
    """The tokens, the layer they go through, and every tensor on the way."""

    tokens: Tokens
    layer: MultiHeadAttention
    steps: MultiHeadSteps

    @property
    def inputs(self) -> Tensor:
        return self.steps.input

    @property
    def num_heads(self) -> int:
        return self.layer.num_heads

    @property
    def num_hiddens(self) -> int:
        return self.layer.W_q.out_features


def ask(chapter: Chapter) -> Asked | None:
    """What the reader asks to see; None after a sentence that says why there is nothing to see."""
    controls = chapter.controls
    with chapter.card("ask"):
        first, second = st.columns([4, 5], gap="medium", vertical_alignment="bottom")
        with first:
            source = controls.choice("source", ("sentence", "random", "trained"), "sentence")
        with second:
            if source == "random":
                count = int(controls.slider("tokens", 1, MOST_TOKENS, 12))
            else:
                start = next(sample.english for sample in sentences() if sample.id == "cat")
                text = controls.text("text", start, placeholder=chapter.words("placeholder"))
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            width = 0
            if source == "trained":
                block = int(controls.choice("block", (1, 2, 3), 3)) - 1
            else:
                width = int(controls.number("width", 0, WIDEST, 64, 8))
            heads = int(controls.number("heads", 0, MOST_HEADS, 8))
            if source != "trained":  # those weights are as they were learned
                with controls.more():
                    sharpness = controls.slider("sharpness", 0.0, 8.0, 2.0, 0.5)
                    seed = int(controls.number("seed", 0, 999, 0))
    try:
        model = None if source == "random" else translator(MODEL)
    except CheckpointError as error:
        model = None
        if source == "trained":
            st.error(chapter.common("no-model", reason=escape(str(error))), icon=":material/inventory_2:")
            return None
    except ValueError as error:  # an absent device; the message names those there are
        st.error(escape(str(error)), icon=":material/memory:")
        return None
    if source == "trained" and model is not None:
        width = model.model.encoder.num_hiddens
    if not _can_be_cut(chapter, width, heads):
        return None
    if source == "random":
        tokens: Tokens | None = random_tokens(count, width, seed)
    elif source == "trained" and model is not None:
        tokens = _through_the_model(chapter, text, block)
    else:
        tokens = _embedded(text, width, model)
    if tokens is None:
        return None
    if not tokens.labels:
        st.info(chapter.words("empty"), icon=":material/edit:")
        return None
    if tokens.total > len(tokens.labels):
        st.warning(chapter.words("cut", total=f"{tokens.total:,}", most=MOST_TOKENS), icon=":material/content_cut:")
    if source == "trained" and model is not None:
        layer = trained_layer(model, block, heads)
        trained_heads = model.model.encoder.blocks[block].attention.num_heads
        st.caption(chapter.words("trained", block=block + 1, width=width, own=trained_heads, heads=heads))
    else:
        layer = fresh_layer(width, heads, sharpness, seed)
    return Asked(tokens, layer, multi_head_steps(layer, tokens.X[None]))


def maps(chapter: Chapter, asked: Asked) -> int:
    """Every head's map, one of them open; the number of the one that is."""
    labels = chapter.words.group("view")
    names = asked.tokens.labels
    group = MapGroup("heads", labels["heads"], labels["tokens"], labels["tokens"], names, names, (asked.steps.call,))
    view = chapter.attention_view(
        (group,), head_param=chapter.controls.key("head"), pin_param=chapter.controls.key("pin")
    )
    return view.head


def flow(chapter: Chapter, asked: Asked, head: int) -> None:
    """The shapes from input to output, and the numbers in the chosen tensor."""
    names = chapter.words.group("figure")
    tensors = asked.steps.tensors()
    picture, numbers = st.columns([5, 6], gap="large")
    with numbers:
        chosen = chapter.controls.select("stage", tuple(tensors), "split_queries")
        values = tensors[chosen][0]
        n, d = asked.inputs.shape[1:]
        sizes = {"n": n, "d": d, "h": asked.num_heads, "w": d // asked.num_heads, "head": head + 1}
        chapter.text(f"stage-{chosen}", **sizes)
        in_heads = values.dim() == 3
        shown = values[head] if in_heads else values
        across = names["key"] if chosen in {"scores", "weights"} else names["dimension"]
        heatmap = signed_heatmap(shown, names["token"], across, asked.tokens.labels)
        chapter.heatmap("stage", heatmap, rows=shown.shape[0], columns=shown.shape[1], stage=names[chosen])
        if in_heads:
            st.caption(chapter.words("stage-head", head=head + 1, heads=asked.num_heads))
    with picture:
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        figure = figures.flow_figure(shapes, asked.num_heads, chosen, names)
        summary = ", ".join(f"{names[name]} {shape}" for name, shape in shapes.items())
        chapter.figure("flow", figure, summary=summary)


def cost(chapter: Chapter, asked: Asked) -> None:
    """Parameters, multiplications and weights as heads grow: at fixed width, and where each head has all of it."""
    names = chapter.words.group("figure")
    n, d = asked.inputs.shape[1:]
    own = multi_head_cost(n, d, asked.num_heads)
    chapter.text(
        "cost",
        d=d,
        n=n,
        heads=asked.num_heads,
        parameters=f"{own.parameters:,}",
        multiplications=f"{own.multiplications:,}",
        weights=f"{own.weights:,}",
    )
    count = chapter.controls.choice("count", ("parameters", "multiplications", "weights"), "multiplications")
    heads = [h for h in divisors(d) if h <= MOST_HEADS]
    costs = [multi_head_cost(n, d, h) for h in heads]
    lines = {
        "shared": [getattr(cost, count) for cost in costs],
        "whole": [getattr(multi_head_cost(n, d, h, d), count) for h in heads],
    }
    first, last = f"{lines['shared'][0]:,}", f"{lines['shared'][-1]:,}"
    figure = figures.cost_figure(lines, heads, asked.num_heads, names[count], names)
    chapter.figure("cost", figure, what=names[count], first=first, last=last, most=heads[-1])
    number = st.column_config.NumberColumn(format="localized")
    table = _cost_table(chapter, d, heads, costs)
    st.dataframe(table, hide_index=True, height="content", column_config=dict.fromkeys(table.columns, number))
    chapter.text("published")
    bleu = figures.published_figure(PUBLISHED_BLEU, asked.num_heads, names)
    summary = ", ".join(f"{h}: {value}" for h, value in PUBLISHED_BLEU.items())
    chapter.figure("published", bleu, summary=summary)


def batch(chapter: Chapter, asked: Asked) -> None:
    """All heads at once against one after the other: the same numbers, and not the same time."""
    alone = one_head_at_a_time(asked.layer, asked.inputs)
    chapter.text("batch", heads=asked.num_heads, products=2 * asked.num_heads)
    with st.container(horizontal=True, key="claims-batch"):
        residual = float((alone - asked.steps.output).abs().max())
        chapter.claim("batch", residual, rounding_bound(asked.steps), heads=asked.num_heads)
    width = asked.num_hiddens
    stopwatch(chapter, "race", lambda: _race(width), lambda run: _draw_race(chapter, run))


def _can_be_cut(chapter: Chapter, width: int, heads: int) -> bool:
    """Whether the width can be shared out evenly; if not, a sentence, and the nearest numbers that can."""
    if width == 0:
        st.warning(chapter.words("no-width"), icon=":material/edit:")
        return False
    if heads == 0:
        st.warning(chapter.words("no-heads"), icon=":material/edit:")
        return False
    possible = [h for h in divisors(width) if h <= MOST_HEADS]
    if heads in possible:
        return True
    said = ", ".join(map(str, possible))
    st.warning(chapter.words("not-divisible", heads=heads, width=width, possible=said), icon=":material/edit:")
    key = chapter.controls.key("heads")
    near = {max(h for h in possible if h < heads), *[h for h in possible if h > heads][:1]}
    with st.container(horizontal=True):
        for h in sorted(near):
            label = chapter.words("use-heads", heads=h)
            change = {key: h}
            st.button(label, key=f"{key}-{h}", on_click=st.session_state.update, args=(change,))
    return False


def _embedded(text: str, width: int, model: Translator | None) -> Tokens:
    """The words in the model's embedding, or each with a random vector where no model ships, in the width asked for."""
    tokens = sentence_tokens(text, MOST_TOKENS, width, model)
    X = resize_width(tokens.X, width)
    return Tokens(tokens.labels, X, tokens.height, tokens.width, tokens.total)


@computed()
def _encoder_input(text: str, block: int) -> Tokens:
    tokens: Tokens = runner().about(Shipped(MODEL), "encoder-input", text, block, MOST_TOKENS)
    return tokens


def _through_the_model(chapter: Chapter, text: str, block: int) -> Tokens | None:
    if not text.strip():
        st.info(chapter.words("empty"), icon=":material/edit:")
        return None
    try:
        return _encoder_input(text, block)
    except TextError as error:
        st.warning(escape(str(error)), icon=":material/edit:")
        return None


def _cost_table(chapter: Chapter, d: int, heads: list[int], costs: list[MultiHeadCost]) -> pd.DataFrame:
    words = chapter.words.group("column")
    rows = [
        {
            words["heads"]: h,
            words["width"]: d // h,
            words["parameters"]: cost.parameters,
            words["projections"]: cost.projections,
            words["products"]: cost.products,
            words["weights"]: cost.weights,
        }
        for h, cost in zip(heads, costs, strict=True)
    ]
    return pd.DataFrame(rows)


def _race(width: int) -> Run:
    """Time both ways for every number of heads; to the stopwatch, the length is the number of heads."""
    heads = [h for h in _MORE_HEADS if width % h == 0]
    X = random_tokens(_TIMED_TOKENS, width).X[None]

    def prepare(name: str, num_heads: int) -> Callable[[], object]:
        layer = fresh_layer(width, num_heads)
        return (lambda: layer(X, X, X)) if name == "batch" else (lambda: one_head_at_a_time(layer, X))

    series = measure(("batch", "loop"), heads, prepare, total_seconds=10.0)
    return Run(series, {"n": _TIMED_TOKENS, "d": width}, 2 * len(heads))


def _draw_race(chapter: Chapter, run: Run) -> None:
    figure = figures.batch_figure(run.measurements, chapter.words.group("figure"))
    chapter.figure("race", figure, done=len(run.measurements), n=run.settings["n"], d=run.settings["d"])
