"""The scoring chapter's second half: why 1/sqrt(d), the Gaussian taken apart, four scores, and shapes."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import streamlit as st
import torch

from pages.scoring_functions import gaussian_figures as scoring_gaussian
from pages.scoring_functions import product_figure as matrix_product
from pages.scoring_functions import scaling_figures as scoring_scaling
from ui.chapter import Chapter
from ui.compute import computed
from viz_core.attention.scoring import batch_product
from viz_core.figures.number_grid import number_grid
from viz_core.lessons.scoring_functions.gaussian_terms import gaussian_scores, gaussian_terms, to_one_length
from viz_core.lessons.scoring_functions.scaling import Width, dot_products, measure_width, variance_error_allowed
from viz_core.lessons.scoring_functions.score_contest import (
    Entry,
    additive_loop_error,
    contest,
    general_identity_error,
    general_projection_error,
)
from viz_core.lessons.scoring_functions.score_scenes import SCENES, book_example_error

WIDTHS = tuple(2**k for k in range(11))
PAIRS = 4096
STEPS = (0, 10, 30, 100, 300)
HIDDEN = (1, 2, 4, 8, 16, 32)
ROUNDING = 1e-5  # sums of up to 1,024 terms in float32


def scaling(chapter: Chapter) -> None:
    """The spread of q . k over d, and what softmax makes of it with and without the division."""
    controls, names = chapter.controls, chapter.words.group("figure")
    chapter.text("scaling")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        d = controls.stops("d", WIDTHS, 64)
        num_keys = int(controls.slider("keys", 1, 64, 16))
        with controls.more():
            seed = int(controls.number("seed", 0, 999, 0))
    widths = _widths(num_keys, seed)
    width = widths[WIDTHS.index(d)]
    products = dot_products(d, PAIRS, seed)
    spread, one = st.columns(2)
    with spread:
        figure = scoring_scaling.spread_figure(widths, d, names)
        chapter.figure("spread", figure, d=d, low=_signed(width.quantiles[0]), high=_signed(width.quantiles[-1]))
    with one:
        figure = scoring_scaling.histogram_figure(products.numpy(), d, names)
        values = {"d": d, "variance": f"{width.variance:.2f}", "scaled": f"{width.variance / d:.3f}"}
        chapter.figure("histogram", figure, pairs=f"{PAIRS:,}", root=f"{math.sqrt(d):.3g}", **values)
    chapter.figure(
        "sharpness",
        scoring_scaling.sharpness_figure(widths, num_keys, d, names),
        d=d,
        keys=num_keys,
        most=f"{math.log2(num_keys):.2f}",
        **_sharpness_words(width),
    )
    first = products[:num_keys]
    plain, scaled = torch.softmax(first, dim=0), torch.softmax(first / math.sqrt(d), dim=0)
    figure = scoring_scaling.weights_figure(plain.numpy(), scaled.numpy(), names)
    chapter.figure("one-query", figure, d=d, plain=f"{plain.max():.3f}", scaled=f"{scaled.max():.3f}")
    with st.container(horizontal=True, key="claims-scaling"):
        chapter.claim(
            "variance", abs(width.variance / d - 1), variance_error_allowed(d, PAIRS), d=d, pairs=f"{PAIRS:,}"
        )
        entropies = [width.scaled.entropy for width in widths]
        chapter.claim("flat", max(entropies) - min(entropies), 0.1 * max(math.log2(num_keys), 1))


def _sharpness_words(width: Width) -> dict[str, Any]:
    return {
        f"{kind}_{name}": f"{getattr(getattr(width, kind), name):.3f}"
        for kind in ("plain", "scaled")
        for name in ("entropy", "largest", "passed")
    }


def gaussian(chapter: Chapter) -> None:
    """-1/2 ||q - k||^2 in three terms, and what softmax keeps of them."""
    controls, names = chapter.controls, chapter.words.group("figure")
    chapter.text("gaussian")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        x = controls.slider("x", -2.0, 2.0, 1.0, 0.1)
        y = controls.slider("y", -2.0, 2.0, 0.5, 0.1)
        lengths = controls.choice("lengths-of-keys", ("free", "one"), "free")
        with controls.more():
            count = int(controls.number("count", 1, 12, 6))
            seed = int(controls.number("places", 0, 999, 6))
    query = torch.tensor([[x, y]])
    keys = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed)).clamp(-3, 3)
    keys = to_one_length(keys) if lengths == "one" else keys
    terms = gaussian_terms(query, keys)
    weights = {
        "gaussian": torch.softmax(gaussian_scores(query, keys), dim=-1)[0],
        "without-query": torch.softmax(terms.product + terms.key_term, dim=-1)[0],
        "dot": torch.softmax(terms.product, dim=-1)[0],
    }
    nearest = int(weights["gaussian"].argmax())
    plane, bars = st.columns(2)
    with plane:
        figure = scoring_gaussian.plane_figure(query[0].numpy(), keys.numpy(), weights["gaussian"].numpy(), names)
        chapter.figure("plane", figure, count=count, x=_signed(x), y=_signed(y), nearest=nearest + 1)
    with bars:
        figure = scoring_gaussian.terms_figure(terms, names)
        chapter.figure("terms", figure, query_term=_signed(float(terms.query_term)), count=count)
    kept = {name: values.numpy() for name, values in weights.items()}
    moved = float((weights["gaussian"] - weights["dot"]).abs().max())
    chapter.figure("kept", scoring_gaussian.kept_figure(kept, names), moved=f"{moved:.3f}")
    with st.container(horizontal=True, key="claims-gaussian"):
        chapter.claim("apart", float((terms.total() - gaussian_scores(query, keys)).abs().max()), ROUNDING)
        gone = float((weights["gaussian"] - weights["without-query"]).abs().max())
        chapter.claim("cancels", gone, 1e-6)
        if lengths == "one":
            chapter.claim("one-length", moved, 1e-6)
        elif count > 1:
            chapter.claim_at_least("free-lengths", moved, 1e-3)


def four_scores(chapter: Chapter) -> None:
    """Dot, scaled dot, general and additive on the same queries and keys."""
    controls = chapter.controls
    chapter.text("scores")
    name = controls.choice("scene", tuple(SCENES), "alike")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        shown = controls.choice("show", ("weights", "raw-scores"), "weights")
        steps = controls.stops("steps", STEPS, 0) if name != "book" else 0
        hidden = controls.stops("hidden", HIDDEN, 8)
        with controls.more():
            seed = int(controls.number("draw", 0, 999, 0))
    scene = SCENES[name](seed)
    entries = _contest(name, hidden, steps, seed)
    d_q, d_k = scene.widths
    batch, n = scene.queries.shape[:2]
    chapter.text(f"scene.{name}", queries=batch * n, keys=scene.keys.shape[1], d_q=d_q, d_k=d_k)
    for pair in (("dot", "scaled"), ("general", "additive")):
        for column, one in zip(st.columns(2), pair, strict=True):
            with column, st.container(border=True, key=f"card-{one}"):
                chapter.text(f"formula.{one}", d_q=d_q, d_k=d_k, h=hidden)
                _score_map(chapter, entries[one], shown, batch)
                if entries[one].scores is None:
                    st.info(chapter.words("undefined", d_q=d_q, d_k=d_k), icon=":material/block:")
    chapter.look_for(f"scene-{name}")
    _costs(chapter, entries)
    with st.container(horizontal=True, key="claims-scores"):
        if d_q == d_k:
            chapter.claim("identity", general_identity_error(scene), ROUNDING)
        chapter.claim("projections", general_projection_error(scene, seed=seed), 1e-4)
        chapter.claim("additive-loop", additive_loop_error(scene, hidden, seed), ROUNDING)
        chapter.claim("book", book_example_error(), ROUNDING)


def _score_map(chapter: Chapter, entry: Entry, shown: str, batch: int) -> None:
    values = entry.weights if shown == "weights" else entry.scores
    if values is None:
        return
    names = chapter.words.group("figure")
    flat = values.flatten(0, 1)
    allowed = None if shown == "raw-scores" or entry.weights is None else (entry.weights.flatten(0, 1) > 0).numpy()
    rows, columns = ([str(i + 1) for i in range(size)] for size in flat.shape)
    down = names["query" if batch == 1 else "batch"]
    limit = None if shown == "weights" else float(flat.abs().max().clamp_min(1e-6))
    figure = number_grid(flat.numpy(), rows, columns, names["key"], down, shown=allowed, limit=limit, digits=2, cell=34)
    chapter.figure("scores", figure, score=chapter.words(f"option.{entry.name}"))
    if not math.isnan(entry.found):
        st.caption(chapter.words("found", share=f"{entry.found:.0%}"))


def _costs(chapter: Chapter, entries: dict[str, Entry]) -> None:
    """Parameters and multiplications of each, as a table."""
    columns = {name: chapter.words(f"column.{name}") for name in ("score", "parameters", "multiplications")}
    table = pd.DataFrame(
        {
            columns["score"]: [chapter.words(f"option.{entry.name}") for entry in entries.values()],
            columns["parameters"]: [entry.parameters for entry in entries.values()],
            columns["multiplications"]: [
                None if entry.scores is None else entry.multiplications for entry in entries.values()
            ],
        }
    )
    number = st.column_config.NumberColumn(format="localized")
    config = {columns["parameters"]: number, columns["multiplications"]: number}
    st.dataframe(table, hide_index=True, column_config=config, key="costs", placeholder="—")


def shapes(chapter: Chapter) -> None:
    """(b, n, m) x (b, m, p) -> (b, n, p), with one entry followed back."""
    controls = chapter.controls
    chapter.text("shapes")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        b, n, m = (int(controls.number(name, 1, 6, value)) for name, value in (("b", 2), ("n", 3), ("m", 4)))
        inner, p = (int(controls.number(name, 1, 6, value)) for name, value in (("inner", 4), ("p", 6)))
    X, Y = _whole_numbers(b, n, m, 0), _whole_numbers(b, inner, p, 1)
    try:
        Z = batch_product(X, Y)
    except ValueError:
        st.warning(chapter.words("no-product", b=b, n=n, m=m, inner=inner, p=p), icon=":material/block:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        sheet, row, column = (
            int(controls.number(name, 1, most, min(start, most))) - 1
            for name, most, start in (("sheet", b, 1), ("i", n, 2), ("j", p, 3))
        )
    names = chapter.words.group("figure")
    entry = matrix_product.Entry(sheet, row, column)
    parts = zip(X[sheet, row].tolist(), Y[sheet, :, column].tolist(), strict=True)
    told: dict[str, Any] = {
        "terms": " + ".join(f"{_factor(x)} \\cdot {_factor(y)}" for x, y in parts),
        "value": int(Z[entry]),
    }
    told |= {"b": b, "n": n, "m": m, "p": p, "sheet": sheet + 1, "i": row + 1, "j": column + 1}
    chapter.text("product", **told)
    chapter.figure("product", matrix_product.product_figure(X.numpy(), Y.numpy(), entry, names), **told)
    with st.container(horizontal=True, key="claims-shapes"):
        one_by_one = torch.stack([X[i] @ Y[i] for i in range(b)])
        chapter.claim("sheets", float((Z - one_by_one).abs().max()), 0.0, b=b)
        chapter.claim("entry", abs(float(Z[entry]) - sum(X[sheet, row].mul(Y[sheet, :, column]).tolist())), 0.0)


def _whole_numbers(b: int, rows: int, columns: int, seed: int) -> torch.Tensor:
    """Small whole numbers, which can be multiplied in the head."""
    return torch.randint(-2, 4, (b, rows, columns), generator=torch.Generator().manual_seed(seed)).float()


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _factor(value: float) -> str:
    return f"({int(value)})" if value < 0 else str(int(value))


@computed(says="measuring")
def _widths(num_keys: int, seed: int) -> tuple[Width, ...]:
    return tuple(measure_width(d, num_keys, PAIRS, seed) for d in WIDTHS)


@computed()
def _contest(scene: str, num_hiddens: int, steps: int, seed: int) -> dict[str, Entry]:
    return contest(SCENES[scene](seed), num_hiddens, steps, seed)
