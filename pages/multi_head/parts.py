"""Parts of the page: maps, shapes, costs, ranges and the book's example."""

import re
from functools import cache, partial

import pandas as pd
import streamlit as st
import torch
from PIL import Image

from pages.multi_head import figures
from pages.multi_head.figures import heads_figure, ranges_figure, toy_figure
from pages.multi_head.inputs import MAX_HEADS, LayerInputs
from ui.blocks.over_picture import tiles, weights_image
from ui.blocks.translation import DEFAULT_HEAD, sample_maps
from ui.chapter.chapter import Chapter
from ui.text.numbers import localised
from ui.widgets.choices import Mark, Marks
from ui.widgets.heatmap import signed_heatmap
from viz_core.lessons.multi_head import (
    LENGTHS,
    MultiHeadCost,
    book_toy,
    divisors,
    is_separator,
    mean_ranges,
    multi_head_cost,
    residuals,
    rounding_bound,
    uniform_range,
    variant,
    walk_residual,
)
from viz_core.maps.contributions import ContributionKind, shares_of_call
from viz_core.pretrained.samples import sentence
from viz_core.view.map_group import MapGroup
from viz_core.view.save import RunSource
from viz_core.view.state import DisplayOptions, ViewState

_WIDEST = 400
_SECOND_HEAD = 4  # of the last encoder layer: it attends to the previous token, `DEFAULT_HEAD` to the next
_LAYER = {"source": "trained", "block": 3, "heads": 8}
ANSWERS = Marks(
    "maps",
    tuple(Mark(part=f".head[data-head='{head}']") for head in (0, 2, 7)),
    {**_LAYER, "text": sentence("cat")},
    {**_LAYER, "text": "Tom bought his sister a red umbrella."},
)
"""The thumbnails of heads 1, 3 and 8."""


def ones(chapter: Chapter) -> None:
    """Show how much the heads of the first sentence differ, with the book's ones and with random inputs."""
    differ = {
        name: float((made[0].amax(dim=0) - made[0].amin(dim=0)).max())
        for name, made in (("ones", book_toy().weights), ("drawn", book_toy(ones=False).weights))
    }
    values = {name: f"{each:.3g}" for name, each in differ.items()}
    chapter.text("measured.ones", share=f"{float(book_toy().weights[0, 0, 0, 0]):.4f}", **values)


def toy(chapter: Chapter) -> None:
    """The book's toy, with inputs of ones or random ones, and a width for each of the three."""
    controls = chapter.controls
    chapter.text("toy")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        content = controls.choice("content", ("ones", "drawn"), "ones")
        q, k, v = (int(controls.number(name, 1, _WIDEST, 100)) for name in ("query-size", "key-size", "value-size"))
    made = book_toy(q, k, v, ones=content == "ones")
    first, second = LENGTHS
    beyond = max(float(made.weights[row, ..., length:].max()) for row, length in enumerate(LENGTHS))
    labels = chapter.words.group("figure")
    figure = partial(toy_figure, made.weights.numpy(), labels)
    count = f"{made.parameters:,}"
    chapter.figure("toy", figure, height=330, first=first, second=second, parameters=count, q=q, k=k, v=v)
    chapter.source_card("shape", made.output.shape)
    with chapter.claim_row("claims-toy"):
        chapter.claim("beyond", beyond, 0.0, first=first, second=second)
    chapter.exercise("ones", reveal=partial(ones, chapter))


_ROW = 35  # pixels of a row of Streamlit's tables


def cost(chapter: Chapter, layer_inputs: LayerInputs) -> None:
    """Parameters, multiplications and weights as heads grow at fixed width."""
    n, d = layer_inputs.inputs.shape[1:]
    own = multi_head_cost(n, d, layer_inputs.num_heads)
    chapter.text(
        "cost",
        d=d,
        n=n,
        heads=layer_inputs.num_heads,
        parameters=f"{own.parameters:,}",
        multiplications=f"{own.multiplications:,}",
        weights=f"{own.weights:,}",
    )
    heads = [h for h in divisors(d) if h <= MAX_HEADS]
    costs = [multi_head_cost(n, d, h) for h in heads]
    chapter.lazy("cost-table", lambda: _draw_table(_cost_table(chapter, d, heads, costs)), _ROW * (1 + len(heads)))
    chapter.text("published")
    chapter.source_card("heads")


def _draw_table(table: pd.DataFrame) -> None:
    number = st.column_config.NumberColumn(format="localized")
    st.dataframe(table, hide_index=True, height="content", column_config=dict.fromkeys(table.columns, number))


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


def flow(chapter: Chapter, layer_inputs: LayerInputs, head: int) -> None:
    """The shapes from input to output, and the numbers in the chosen tensor."""
    layer, steps = layer_inputs.layer, layer_inputs.steps
    d, h = layer_inputs.num_hiddens, layer_inputs.num_heads
    chapter.text("mathematics", d=d, h=h, w=d // h)
    names = chapter.words.group("option") | chapter.words.group("figure")
    tensors = layer_inputs.steps.tensors()
    picture, numbers = st.columns([5, 6], gap="large")
    with numbers:
        chosen = chapter.controls.select("stage", tuple(tensors), "split_queries")
        values = tensors[chosen][0]
        n, d = layer_inputs.inputs.shape[1:]
        sizes = {"n": n, "d": d, "h": layer_inputs.num_heads, "w": d // layer_inputs.num_heads, "head": head + 1}
        chapter.text(f"stage-{chosen}", **sizes)
        in_heads = values.dim() == 3
        shown = values[head] if in_heads else values
        across = names["key"] if chosen in {"scores", "masked", "exponentials", "weights"} else names["dimension"]
        labels = layer_inputs.tokens.labels
        heatmap = partial(signed_heatmap, shown, names["token"], across, labels)
        chapter.heatmap("stage", heatmap, rows=shown.shape[0], columns=shown.shape[1], stage=names[chosen])
        if in_heads:
            st.caption(chapter.words("stage-head", head=head + 1, heads=layer_inputs.num_heads))
    with picture:
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        figure = partial(figures.flow_figure, shapes, layer_inputs.num_heads, chosen, names)
        summary = [f"{names[name]} {shape}" for name, shape in shapes.items()]
        chapter.figure("flow", figure, height=800, summary=summary)
    with chapter.claim_row("claims-flow"):
        chapter.claim("walk", lambda: walk_residual(layer, steps), rounding_bound(steps))


_ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms
_MAX_MAPS = 8  # beside each other in half the width


def main_figure(chapter: Chapter, layer_inputs: LayerInputs, broken: str, setting: str) -> None:
    """Draw the maps and their claims with this setting, "" for the correct layer."""
    if broken:
        _small_maps(chapter, layer_inputs, setting)
    else:
        _view(chapter, layer_inputs)
    layer, steps = layer_inputs.layer, layer_inputs.steps
    off = cache(lambda: residuals(layer, steps, setting))
    limit = rounding_bound(steps)
    with chapter.claim_row("main"):
        chapter.claim("torch", lambda: off()[0], limit)
        chapter.claim("torch-weights", lambda: off()[1], limit, heads=layer_inputs.num_heads)
        chapter.claim("rows", lambda: _row_error(layer_inputs, setting), _ROUNDING)


def open_head(chapter: Chapter, layer_inputs: LayerInputs) -> int:
    """Return the index of the head that is open in the attention view: that in the URL, else `DEFAULT_HEAD`."""
    found = re.fullmatch(r"heads\.0\.(\d{1,3})", st.query_params.get(chapter.controls.key("head"), ""))
    if found and int(found[1]) < layer_inputs.num_heads:
        return int(found[1])
    return _default_head(layer_inputs)


def _default_head(layer_inputs: LayerInputs) -> int:
    return min(DEFAULT_HEAD, layer_inputs.num_heads) - 1


def _row_error(layer_inputs: LayerInputs, setting: str) -> float:
    weights = variant(layer_inputs.layer, layer_inputs.steps, setting).weights
    return float((weights.sum(dim=-1) - 1).abs().max())


def _maps(chapter: Chapter, layer_inputs: LayerInputs, contribution_kind: ContributionKind = "") -> MapGroup:
    labels = chapter.words.group("view")
    names = layer_inputs.tokens.labels
    call = layer_inputs.steps.call
    if contribution_kind:
        call = shares_of_call(call, layer_inputs.layer.W_o, in_lengths=contribution_kind == "lengths")
    return MapGroup(
        "heads",
        labels["heads"],
        labels["tokens"],
        labels["tokens"],
        names,
        names,
        (call,),
        rows_sum_to_one=contribution_kind != "lengths",
    )


def _view(chapter: Chapter, layer_inputs: LayerInputs) -> None:
    contribution_kind = chapter.contribution_kind()
    group = _maps(chapter, layer_inputs, contribution_kind)
    head = _default_head(layer_inputs)
    second = min(_SECOND_HEAD, head) - 1
    other = head if open_head(chapter, layer_inputs) == second else second
    beside = DisplayOptions(compare="side", other=f"0.0.{other}") if head else DisplayOptions()
    chapter.attention_view(
        (group,),
        ViewState("heads", 0, head, display=beside),
        run_source=lambda: RunSource.of_recording((group,)),
        contribution_kind=contribution_kind,
        head_param=chapter.controls.key("head"),
        pin_param=chapter.controls.key("pin"),
    )


def _small_maps(chapter: Chapter, layer_inputs: LayerInputs, setting: str) -> None:
    weights = variant(layer_inputs.layer, layer_inputs.steps, setting).weights[0]
    sums = weights.sum(dim=-1)
    chapter.figure(
        "variant",
        heads_figure(weights[:_MAX_MAPS].numpy(), chapter.words.group("figure")),
        shown=min(_MAX_MAPS, len(weights)),
        heads=len(weights),
        peak=f"{float(weights.amax(dim=-1).mean()):.2f}",
        least=f"{float(sums.min()):.2f}",
        most=f"{float(sums.max()):.2f}",
    )


def ranges(chapter: Chapter, layer_inputs: LayerInputs, head: int) -> None:
    """Draw the mean attention distance of each head: over all tokens, and among words only."""
    weights, labels = layer_inputs.steps.weights[0], layer_inputs.tokens.labels
    places = range(len(labels))
    words = [place for place in places if not is_separator(labels[place])] or list(places)
    others = [place for place in places if place not in words]
    share = weights[..., others].sum(dim=-1).mean(dim=-1)
    found = {"all": mean_ranges(weights), "words": mean_ranges(weights, words)}
    uniform = {"all": uniform_range(places), "words": uniform_range(words)}
    closer = {name: int((distances < uniform[name]).sum()) for name, distances in found.items()}
    chapter.text("ranges", separators=len(others), least=f"{float(share.min()):.0%}", most=f"{float(share.max()):.0%}")
    names, language = chapter.words.group("figure"), chapter.words.language
    pairs = [[localised(f"{each:.2f}", language) for each in pair] for pair in zip(*found.values(), strict=True)]
    chapter.figure(
        "ranges",
        partial(ranges_figure, {name: each.numpy() for name, each in found.items()}, uniform, head, names),
        height=300,
        summary={i: f"{every} / {words_only}" for i, (every, words_only) in enumerate(pairs, start=1)},
        heads=len(weights),
        near_all=closer["all"],
        near_words=closer["words"],
        even_all=f"{uniform['all']:.2f}",
        even_words=f"{uniform['words']:.2f}",
    )


def gallery_picture() -> Image.Image:
    """Every head of the encoder on the first long sample, four rows of six."""
    encoder = sample_maps("transformer-en-fr", "cat")[0]
    heads = torch.cat([call.weights()[0] for call in encoder.calls])
    return weights_image(tiles(heads, columns=6).numpy())
