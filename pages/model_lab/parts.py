"""Sections on attention sinks and on a model's own position scheme."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from pages.model_lab import figures
from pages.model_lab.figures import distances_figure, fingerprint_figure, perplexities_figure
from serving.requests.hub import HubRequest
from ui.blocks.figures import slopes_figure
from ui.blocks.over_picture import weights_image
from ui.blocks.translation import sample_maps
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.head_names import head_link
from ui.text.markdown import escape
from viz_core.hub import HubCard, HubRun, Positions
from viz_core.hub.runs.positions import MAX_ROWS, bias_by_offset, cosines, wavelengths
from viz_core.lab.heads_off import switchable
from viz_core.lab.sinks import LEAST_COUNTED, NUM_FIRST, hidden_tokens, longest_window, sinks_of, windowed
from viz_core.pretrained.samples import long_text
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState

_NARROWEST, _FIRST, _WIDEST = 8, 16, 512


def sinks(
    chapter: Chapter, card: HubCard, request: HubRequest, result: HubRun, groups: tuple[MapGroup, ...], view: ViewState
) -> None:
    """Sinks of the kind of maps that is open above; then the run again without the first token."""
    group = next(group for group in groups if group.id == view.group)
    chapter.text("sinks", kind=group.label)
    _resting(chapter, request, group)
    features = card.kind_class.features
    if not features & {"window", "hidden-tokens"}:
        return
    if not evaluate(request, switchable):
        st.caption(chapter.words("no-switches"))
    elif "window" in features and any(call.signed for call in result.trace):
        st.caption(chapter.words("no-window"))
    elif "window" in features:
        _window(chapter, card, request, result)
    else:
        chapter.lazy("sinks-hidden", lambda: _hidden(chapter, card, request, result), 420)


def _resting(chapter: Chapter, request: HubRequest, group: MapGroup) -> None:
    """Weights on the first token, on a learned sink, and the length of the first token's value."""
    found = evaluate(request, sinks_of, group.id)
    labels = chapter.words.group("figure")
    layer, head = divmod(int(found.shares.argmax()), found.shares.shape[1])
    chapter.figure(
        "sinks-shares",
        partial(fingerprint_figure, found.shares, "first", labels),
        layer=layer + 1,
        head=head + 1,
        linked=head_link(group.id, layer, head),
        token=escape(group.key_tokens[0 if found.learned is None else 1]),
        even=f"{found.even:.2f}",
        sinking=round(found.sinking * found.shares.size),
        count=found.shares.size,
        **_range(found.shares),
    )
    chapter.source_card("sinks")
    if found.learned is not None:
        figure = partial(fingerprint_figure, found.learned, "first", labels)
        chapter.figure("sinks-learned", figure, **_range(found.learned))
    if found.lengths is not None:
        figure = partial(fingerprint_figure, found.lengths, "length", labels)
        chapter.figure("sinks-lengths", figure, **_range(found.lengths))


def _range(values: Float[np.ndarray, "layers heads"]) -> dict[str, Any]:
    layers, heads = values.shape
    return {"layers": layers, "heads": heads, "least": f"{values.min():.2f}", "most": f"{values.max():.2f}"}


def _window(chapter: Chapter, card: HubCard, request: HubRequest, result: HubRun) -> None:
    """Perplexity with a window, as wide as the reader says; a longer text where this one is too short for any."""
    widest = min(_WIDEST, longest_window(result))
    if widest <= _NARROWEST:
        least = _NARROWEST + LEAST_COUNTED + 2
        text = chapter.controls.key(card.kind_class.text_control())
        st.info(chapter.words("window-short", tokens=result.num_prompt_tokens, least=least), icon=":material/info:")
        if st.button(
            chapter.words("window-longer"),
            key=chapter.controls.key("longer"),
            on_click=st.session_state.update,
            args=({text: long_text()},),
        ):
            st.rerun()  # the text is above, outside this section
        return
    size = int(chapter.controls.slider("window", _NARROWEST, widest, min(_FIRST, widest)))
    chapter.lazy("sinks-window", lambda: _perplexities(chapter, request, size), 480)


def _perplexities(chapter: Chapter, request: HubRequest, size: int) -> None:
    found = evaluate(request, windowed, size)
    labels = chapter.words.group("figure")
    sizes: dict[str, Any] = {"size": size, "kept": NUM_FIRST, "rest": size - NUM_FIRST}
    names = {name: chapter.words(f"figure.{name}", **sizes) for name in ("full", "sliding", "with-first")}
    numbers: dict[str, Any] = {
        "full": f"{found.full:,.2f}",
        "sliding": f"{found.sliding:,.2f}",
        "with-first": f"{found.with_first:,.2f}",
    }
    chapter.text("window", counted=found.counted, **sizes)
    chapter.figure("window", perplexities_figure(found, names, labels), counted=found.counted, **sizes, **numbers)
    chapter.source_card("window")


def _hidden(chapter: Chapter, card: HubCard, request: HubRequest, result: HubRun) -> None:
    """Show the change of the output when the first token is hidden, beside others."""
    found = evaluate(request, hidden_tokens)
    labels = chapter.words.group("figure")
    label = labels["probability-moved"] if card.head == "labels" else labels["distance"]
    names = [f"{hidden.place + 1} {result.tokens[hidden.place].label}" for hidden in found]
    distances = np.array([hidden.distance for hidden in found], dtype=np.float32)
    others = [hidden.distance for hidden in found[1:] if not result.tokens[hidden.place].special]
    if not others:
        return
    mean = float(np.mean(others))
    chapter.figure(
        "hidden",
        distances_figure(names, distances, {"token": labels["hidden-token"], "distance": label}),
        first=f"{distances[0]:.3f}",
        others=f"{mean:.3f}",
        count=len(others),
    )


_REACH = 160


def positions(chapter: Chapter, card: HubCard, schemes: tuple[Positions, ...]) -> None:
    """Every scheme the model has; one at a time where there are several."""
    if not schemes:
        st.info(chapter.words("no-positions"), icon=":material/info:")
        return
    scheme = schemes[0]
    if len(schemes) > 1:
        places = {f"{i}. {_named(chapter, one)}": one for i, one in enumerate(schemes, start=1)}
        scheme = places[str(chapter.controls.select("scheme", tuple(places), next(iter(places))))]
    if scheme.where:
        st.caption(chapter.words("where", where=scheme.where))
    if scheme.scheme in ("learned", "sinusoidal"):
        _table(chapter, scheme)
    elif scheme.scheme == "rotary":
        _rotary(chapter, card, scheme)
    elif scheme.scheme == "t5":
        _t5(chapter, scheme)
    else:
        _alibi(chapter, scheme)


def _named(chapter: Chapter, scheme: Positions) -> str:
    """Stack and scheme: "encoder, T5's learned bias"."""
    name, part = chapter.common(f"head-kind.{scheme.stack}"), chapter.words(f"scheme.{scheme.scheme}")
    return chapter.common("named-part", name=name, part=part)


def _table(chapter: Chapter, scheme: Positions) -> None:
    table, names = scheme.values[scheme.num_special :], chapter.words.group("figure")
    rows, width = table.shape
    chapter.text("table", rows=f"{rows:,}", width=width, kind=chapter.words(f"scheme.{scheme.scheme}"))
    chapter.lazy("table", lambda: _table_pictures(chapter, table, names), 440)


def _table_pictures(chapter: Chapter, table: Tensor, names: dict[str, str]) -> None:
    rows, width = table.shape
    shown = min(rows, MAX_ROWS)
    alike = cosines(table)
    adjacent = float(alike.diagonal(1).mean()) if rows > 1 else 1.0
    far = float(alike[0, -1])
    left, right = st.columns(2)
    with left:
        chapter.heatmap("table", figures.table_heatmap(table, names), rows=f"{shown:,}", width=width)
    with right:
        heatmap = figures.cosine_heatmap(table, names)
        chapter.heatmap("similarity", heatmap, rows=f"{shown:,}", near=f"{adjacent:.2f}", far=f"{far:.2f}")


def _rotary(chapter: Chapter, card: HubCard, scheme: Positions) -> None:
    names, frequencies = chapter.words.group("figure"), scheme.values.numpy()
    room = card.max_tokens
    waves = wavelengths(scheme.values)
    slow = int((waves > room).sum()) if room else 0
    limit = chapter.words("limit", count=f"{room:,}") if room else chapter.words("no-limit")
    chapter.text(
        "rotary", pairs=len(frequencies), shortest=f"{float(waves.min()):,.1f}", longest=f"{float(waves.max()):,.0f}"
    )
    chapter.figure(
        "waves",
        partial(figures.wavelengths_figure, frequencies, room, names),
        pairs=len(frequencies),
        slow=slow,
        limit=limit,
        shortest=f"{float(waves.min()):,.1f}",
        longest=f"{float(waves.max()):,.0f}",
    )


def _t5(chapter: Chapter, scheme: Positions) -> None:
    names = chapter.words.group("figure")
    buckets, heads = scheme.values.shape
    bias = bias_by_offset(scheme.values, scheme.bidirectional, scheme.max_distance, _REACH)
    head = int(chapter.controls.slider("head", 1, heads, 1)) - 1 if heads > 1 else 0
    chapter.text("t5", buckets=buckets, heads=heads, distance=scheme.max_distance)
    row = bias[head]
    chapter.figure(
        "t5",
        partial(figures.bias_figure, bias.numpy(), _REACH, head, names),
        head=head + 1,
        heads=heads,
        best=f"{int(row.argmax()) - _REACH:+d}".replace("+0", "0"),
        most=f"{float(row.max()):.2f}",
        least=f"{float(row.min()):.2f}",
    )


def _alibi(chapter: Chapter, scheme: Positions) -> None:
    names, slopes = chapter.words.group("figure"), scheme.values
    heads = len(slopes)
    head = int(chapter.controls.slider("head", 1, heads, 1)) - 1 if heads > 1 else 0
    chapter.text("alibi", heads=heads)
    chapter.figure(
        "slopes",
        partial(slopes_figure, slopes.numpy(), head, names),
        heads=heads,
        head=head + 1,
        slope=f"{float(slopes[head]):.4g}",
    )


def gallery_picture() -> Image.Image:
    """Attention spread by layer and head of a shipped model, which loads faster than those of the lab."""
    groups = sample_maps("transformer-en-fr", "letter")
    layers = [group.picture(layer).fingerprints for group in groups for layer in range(len(group.calls))]
    spread = np.array([[head["entropy"] for head in layer] for layer in layers], dtype=np.float32)
    return weights_image(spread / spread.max(), root=False)
