"""Attention sinks: weight on the first token, length of its value, effect of hiding it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from jaxtyping import Float

from pages.model_lab.figures import fingerprint_figure
from pages.model_lab.heads_off_figures import distances_figure
from pages.model_lab.sinks_figures import perplexities_figure
from serving.requests.hub import HubRequest
from serving.requests.sinks import LEAST_COUNTED, NUM_FIRST, hidden_tokens, longest_window, sinks_of, windowed
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.head_names import head_link
from ui.text.markdown import escape
from viz_core.hub import HubCard, HubRun
from viz_core.lab.heads_off import switchable
from viz_core.pretrained.samples import long_text
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState

_NARROWEST, _FIRST, _WIDEST = 8, 16, 512


def sinks(
    chapter: Chapter,
    card: HubCard,
    request: HubRequest,
    result: HubRun,
    groups: tuple[MapGroup, ...],
    view: ViewState,
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
