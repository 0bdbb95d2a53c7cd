"""Parts of the page: the mask debugger, Gaussian terms, the book's examples, exercises and predictions."""

from functools import partial

import numpy as np
import streamlit as st
import torch
from PIL import Image
from torch import Tensor

from pages.scoring_functions.figures import (
    mask_figure,
    plane_figure,
    sentences_figure,
    softmax_figure,
    terms_figure,
    toy_figure,
)
from ui.blocks.diagram import attention_diagram, attention_height
from ui.blocks.over_picture import weights_image
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from ui.text.numbers import separators
from ui.widgets.predictions import Board, OnFigure, Truth
from viz_core.attention import masked_softmax
from viz_core.lessons.scoring_functions.mask_variants import MASK_VARIANTS, MaskedSoftmax, MaskRun, run_all
from viz_core.lessons.scoring_functions.scaling import (
    LENGTHS,
    SENTENCES,
    batch_product_shape,
    book_weights,
    concatenation_error,
    dot_product_toy,
    gaussian_example,
    sentence_weights,
)

_SHOWN = 6  # keys in the diagram
_DROPOUTS = (0.0, 0.1, 0.3, 0.5, 0.7)
_ROUNDING = 1e-6


def output_diagram(chapter: Chapter, masked: MaskedSoftmax) -> None:
    """The reader's first row, from scores to the weighted sum of values."""
    weights, scores = (each.flatten(0, 1)[0, :_SHOWN].tolist() for each in (masked.weights, masked.scores))
    allowed = masked.allowed.flatten(0, 1)[0, :_SHOWN].tolist()
    shown = [f"{score:.3g}" if seen else "−∞" for score, seen in zip(scores, allowed, strict=True)]
    names = chapter.words.group("figure")
    keys, values = ([f"{letter}{i + 1}" for i in range(len(weights))] for letter in "kv")
    signs = separators(chapter.words.language)
    figure = partial(attention_diagram, "q", keys, weights, values, names["diagram-sum"], names, shown, signs)
    chapter.figure(
        "output", figure, height=attention_height(len(weights)), summary=[f"{weight:.2f}" for weight in weights]
    )


def sentences(chapter: Chapter) -> None:
    """Three sentences of unequal length in one batch, and where their blanks go."""
    words, weights = st.columns([2, 3], gap="large")
    with words:
        chapter.text("sentences")
    with weights:
        names = chapter.words.group("figure")
        signs = separators(chapter.words.language)
        figure = partial(sentences_figure, sentence_weights().numpy(), SENTENCES, names, signs)
        chapter.figure("sentences", figure, height=210, sentences=[" ".join(each) for each in SENTENCES])


def toy(chapter: Chapter) -> None:
    """The book's toy: random keys beside equal ones, and dropout on the weights of both."""
    chapter.text("toy")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        dropout = float(chapter.controls.select_slider("dropout", _DROPOUTS, 0.0))
        seed = int(chapter.controls.number("toy-draw", 0, 999, 0))
    names = chapter.words.group("figure")
    drawn = {kind: dot_product_toy(kind == "equal", dropout, seed) for kind in ("random", "equal")}
    for column, (kind, each) in zip(st.columns(2), drawn.items(), strict=True):
        with column:
            chapter.text(f"toy.{kind}")
            rows = np.stack([*each.weights.numpy(), *each.dropped.numpy()])
            sums = [f"{float(row.sum()):.3f}" for row in each.dropped]
            first, second = LENGTHS
            figure = partial(toy_figure, rows, LENGTHS, names)
            chapter.figure("toy", figure, height=226, first=first, second=second, sums=sums, dropout=f"{dropout:g}")
    equal = drawn["equal"]
    left, right = st.columns(2, gap="large")
    with left:
        chapter.source_card("dot-shape", equal.output.shape)
    with right:
        chapter.source_card("equal-keys", equal.output.flatten().tolist())
    chapter.text("shapes")
    chapter.source_card("product", batch_product_shape)
    with chapter.claim_row("claims-toy"):
        chapter.claim("blanks", _beyond(drawn["random"].weights.numpy()), 0.0, first=LENGTHS[0], second=LENGTHS[1])
        chapter.claim("concatenation", concatenation_error, _ROUNDING)


def _beyond(weights: np.ndarray) -> float:
    """The largest weight on a key beyond its row's length."""
    return max(float(row[length:].max()) for row, length in zip(weights, LENGTHS, strict=True))


SCALES = {f"times-{factor}": factor for factor in (1, 10, 1_000, 100_000, 10_000_000)}


def debugger(chapter: Chapter, masked: MaskedSoftmax | None) -> dict[str, list[MaskRun]] | None:
    """One row of scores through every variant at every length: the maps, and what went wrong in words."""
    if masked is None:
        chapter.text("debugger.waiting")
        return None
    chapter.text("debugger")
    rows = masked.scores.flatten(0, 1)
    which, factor = st.columns([1, 3], gap="medium")
    with which:
        row = int(chapter.controls.number("row", 1, len(rows), 1)) - 1
    with factor:
        scale = SCALES[chapter.controls.choice("scale", tuple(SCALES), "times-1")]
    scores = rows[row] * scale
    if scores.isinf().any():
        st.warning(chapter.words("scale-overflow", scale=f"{scale:,}"), icon=":material/edit:")
        return None
    chapter.text("debugger.row", row=row_names(chapter, masked)[row], scores=_numbers(scores))
    runs = run_all(scores)
    names = chapter.words.group("figure")
    with st.container(horizontal=True, gap="small", key="mask-variants"):
        for variant in MASK_VARIANTS:
            with st.container(border=True, width=300, gap="small", key=f"card-{variant.name}"):
                title = chapter.words(f"variant.{variant.way}")
                dtype = str(variant.dtype).removeprefix("torch.")
                st.markdown(f"**{title}** · {dtype}")
                lines = _verdicts(chapter, runs[variant.name])
                figure = partial(mask_figure, runs[variant.name], names)
                chapter.figure("mask", figure, height=200, variant=f"{title}, {dtype}")
                for line in lines:
                    st.markdown(line)
    chapter.guidance("masks")
    chapter.source_card("masked-softmax", lambda: book_weights().tolist())
    return runs


def _verdicts(chapter: Chapter, runs: list[MaskRun]) -> list[str]:
    """A line for each thing that happened, with the lengths at which it did."""
    lines = []
    for verdict in ("refused", "overflow", "nan", "leak"):
        hit = [run for run in runs if run.verdict == verdict]
        if hit:
            lengths = [str(run.length) for run in hit]
            leak = f"{max(run.leak for run in hit):.4g}"
            refusal = escape(hit[0].refusal)
            lines.append(chapter.words(f"verdict.{verdict}", lengths=lengths, leak=leak, refusal=refusal))
    if not lines:
        lines.append(chapter.words("verdict.fine"))
    if runs[0].variant.filler_overflows and runs[0].weights is not None:
        lines.append(chapter.words("verdict.filler"))
    lines.append(chapter.words("verdict.wrote" if any(run.wrote for run in runs) else "verdict.unwritten"))
    return lines


def _numbers(scores: Tensor) -> list[str]:
    return [f"{score:,.6g}".replace("-", "−") for score in scores.tolist()]


ROUNDING = 1e-5  # sums of up to 1,024 terms in float32


def gaussian(chapter: Chapter) -> None:
    """-1/2 ||q - k||^2 as three terms, and which of them change the softmax."""
    controls, names = chapter.controls, chapter.words.group("figure")
    chapter.text("gaussian")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        x = controls.slider("x", -2.0, 2.0, 1.0, 0.1)
        y = controls.slider("y", -2.0, 2.0, 0.5, 0.1)
        lengths = controls.choice("lengths-of-keys", ("free", "one"), "free")
        with controls.more():
            count = int(controls.number("count", 1, 12, 6))
            seed = int(controls.number("places", 0, 999, 6))
    example = gaussian_example(x, y, count, seed, lengths == "one")
    weights = {name: values.numpy() for name, values in example.weights.items()}
    nearest = int(weights["gaussian"].argmax())
    plane, bars = st.columns(2)
    with plane:
        figure = partial(plane_figure, example.query[0].numpy(), example.keys.numpy(), weights["gaussian"], names)
        chapter.figure("plane", figure, count=count, x=_signed(x), y=_signed(y), nearest=nearest + 1)
    with bars:
        figure = partial(terms_figure, example.terms, names)
        chapter.figure("terms", figure, query_term=_signed(float(example.terms.query_term)), count=count)
    chapter.figure("kept", partial(softmax_figure, weights, names), moved=f"{example.dot_change:.3f}")
    with chapter.claim_row("claims-gaussian"):
        chapter.claim("apart", example.term_error, ROUNDING)
        chapter.claim("cancels", example.query_term_change, 1e-6)
        if lengths == "one":
            chapter.claim("one-length", example.dot_change, 1e-6)
        elif count > 1:
            chapter.claim_at_least("free-lengths", example.ratio_spread, 1e-5)


def _signed(value: float) -> str:
    return f"{value:.2f}"


_SCORES = torch.tensor([[[1.0, 0.0, 3.0, 5.0]]])
_LENGTH = 3
THE_ROW = OnFigure(
    Board("weights", names=tuple(str(i + 1) for i in range(_SCORES.shape[-1]))),
    "weights",
    {"scores": " ".join(f"{score:g}" for score in _SCORES.flatten().tolist()), "lengths": str(_LENGTH)},
    cells=True,
)


def shade_the_row(chapter: Chapter) -> None:
    """The weights of one query with a valid length, in the cells that will show them."""
    chapter.draw_on_figure("row", THE_ROW, row)


def row() -> Truth:
    """What comes out; and no mask, shares of the plain scores, all on one, and alike, for who shades those."""
    weights, unmasked = (
        masked_softmax(_SCORES, lens)[0, 0].double().numpy() for lens in (torch.tensor([_LENGTH]), None)
    )
    seen = np.arange(_SCORES.shape[-1]) < _LENGTH
    scores = np.where(seen, _SCORES[0, 0].double().numpy(), 0)
    mistakes = {
        "unmasked": unmasked,
        "linear": scores / scores.sum(),
        "largest": (scores == scores.max()).astype(np.float64),
        "alike": seen / seen.sum(),
    }
    return Truth(weights, mistakes)


def gallery_picture() -> Image.Image:
    """Each query may see one key more than the one before it: the rows share their weight among more and more."""
    queries, keys = torch.arange(20.0)[:, None], torch.arange(20.0)
    scores = 2 * torch.cos(0.9 * (queries - keys)) - 0.15 * (queries - keys).abs()
    weights = masked_softmax(scores[None], torch.arange(1, 21)[None])[0]
    return weights_image((weights / weights.amax(dim=-1, keepdim=True)).numpy())


def row_names(chapter: Chapter, masked: MaskedSoftmax) -> list[str]:
    batch, queries, _ = masked.scores.shape
    row = chapter.words.group("figure")["row"]
    return [row.format(batch=b + 1, query=q + 1) for b in range(batch) for q in range(queries)]
