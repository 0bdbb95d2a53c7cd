"""Result of a run: the model's output, the size of the recording, and claims about its maps."""

from __future__ import annotations

from functools import cache

import streamlit as st

from pages.model_lab.figures import corner_figure
from serving.requests.hub import HubModelSpec, HubRequest
from serving.requests.lab_queries import (
    CLAIMED_ROWS,
    broken_residuals,
    corner_of_map,
    map_residuals,
    recorded_bytes,
)
from ui.blocks.figures import bars_figure
from ui.chapter.chapter import Chapter
from ui.chapter.contents import page
from ui.compute.heads import scanned_models
from ui.compute.models import evaluate
from ui.text.markdown import escape
from ui.text.model_card import class_label
from ui.text.words import Words
from viz_core.hub import HubCard, HubRun, human_bytes
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState


def outcome(chapter: Chapter, card: HubCard, run: HubRun) -> None:
    """Show the model's output."""
    words = chapter.words
    if run.image is not None:
        caption = words("seen" if run.grid else "given")
        st.image(run.image, width=260, caption=caption, alt=caption)
    if run.video is not None:
        times = [f"{time:.1f}" for time in run.video.times]
        captions = [words("given-frame", number=i + 1, seconds=time) for i, time in enumerate(times)]
        st.image(list(run.video.frames), width=100, caption=captions, alt=captions)
    if run.prompt:
        _prompted(chapter, run)
    if card.head == "words":
        st.markdown(_written(words, run))
    if run.labels:
        top = run.labels[:8]
        names = [class_label(label.text) for label in top]
        chapter.figure(
            "labels",
            bars_figure(
                names, [label.probability for label in top], names[0], words("figure.class"), words.group("figure")
            ),
            first=escape(names[0]),
            probability=f"{top[0].probability:.2f}",
        )


def _prompted(chapter: Chapter, run: HubRun) -> None:
    """How the prompt was built, and what of the picture became tokens."""
    words = chapter.words
    with st.expander(words("prompted"), icon=":material/chat:"):
        st.code(run.prompt, language=None, wrap_lines=True)
        shapes = [f"{grid.shape[0]} × {grid.shape[1]}" for grid in run.patches]
        count = f"{sum(grid.places.size for grid in run.patches):,}"
        if run.video is not None:
            seconds = f"{run.video.seconds:.1f}"
            chapter.text("video-read", count=count, maps=len(shapes), shape=shapes[0], seconds=seconds)
        else:
            chapter.text("patches-read", patches=" + ".join(shapes), count=count)
        if run.frame is None:
            chapter.text("no-tower")
        elif run.video is not None:
            chapter.text("tower-of-video")
        elif len(run.patches) > 1:
            chapter.text("tower-of-tiles")


def notes(chapter: Chapter, request: HubRequest, run: HubRun) -> None:
    """Notes: size of the recording, cut text, unknown tokens."""
    words = chapter.words
    lines = [_measured(words, run, evaluate(request, recorded_bytes))]
    if not run.complete:
        lines.append(words("incomplete", limit=request.new_tokens))
    if run.num_unknown:
        lines.append(words("unknown", count=f"{run.num_unknown:,}", tokens=f"{run.num_prompt_tokens:,}"))
    st.caption("  \n".join(lines))


def _written(words: Words, run: HubRun) -> str:
    """The written text, or that there is none."""
    text = escape(run.text.strip()).replace("\n", "  \n")
    count = len(run.target_tokens) or len(run.tokens) - run.num_prompt_tokens
    if text:
        return words("written", text=text)
    return words("wrote-no-text", count=f"{count:,}") if count else words("nothing-written")


def _measured(words: Words, run: HubRun, held: int) -> str:
    """Number of tokens and heads; for long inputs, size of the recording and of whole maps."""
    whole = sum(4 * call.num_heads * call.num_queries * call.num_keys for call in run.trace)
    if run.sound is not None:
        maps = f"{sum(call.num_heads for call in run.trace):,}"
        return words(
            "counted-heard", seconds=f"{run.sound.waveform.seconds:.2f}", tokens=len(run.target_tokens), maps=maps
        )
    tokens = len(run.tokens) + len(run.target_tokens)
    sizes = {"tokens": f"{tokens:,}", "heads": f"{sum(call.num_heads for call in run.trace):,}"}
    if 2 * held > whole:  # on short texts there is little to spare
        return words("counted", **sizes)
    return words("measured", **sizes, held=human_bytes(held), whole=human_bytes(whole))


def choose_error(chapter: Chapter, card: HubCard) -> str:
    """What to break: "" for nothing."""
    return chapter.break_it("eight-bits", "no-mask") if card.kind_class.writes() else chapter.break_it("eight-bits")


def checked_maps(
    chapter: Chapter,
    card: HubCard,
    request: HubRequest,
    run: HubRun,
    groups: tuple[MapGroup, ...],
    view: ViewState,
    broken: str,
) -> None:
    """Claims about these maps, checked on the last rows of long ones; intact and broken side by side with the map."""
    writes = card.kind_class.writes()
    rows = min(CLAIMED_ROWS, max(call.num_queries for call in run.trace))
    tolerance = 1e-5 if card.precision == "float32" else 1e-3
    heads = sum(call.num_heads for call in run.trace)

    def draw(setting: str) -> None:
        if broken:
            _open_map(chapter, request, groups, view, setting)
        residuals = cache(lambda: evaluate(request, broken_residuals if setting else map_residuals))
        intact = cache(lambda: evaluate(request, map_residuals))
        with chapter.claim_row("claims"):
            rounded = residuals if setting != "no-mask" else intact
            chapter.claim("rows", lambda: rounded()["rows"], tolerance, heads=f"{heads:,}", rows=rows)
            if writes:
                unmasked = residuals if setting != "eight-bits" else intact
                name = "future-written" if card.both_ways else "future"
                chapter.claim(name, lambda: unmasked()["future"], 0.0)

    chapter.side_by_side(broken, draw)


def _open_map(
    chapter: Chapter, request: HubRequest, groups: tuple[MapGroup, ...], view: ViewState, setting: str
) -> None:
    """The first rows and columns of the open head's map, intact or broken."""
    group = next(group for group in groups if group.id == view.group)
    site = group.calls[view.layer].site
    weights = evaluate(request, corner_of_map, site, view.head, setting)
    names = chapter.words.group("figure")
    tokens = group.query_tokens[: len(weights)], group.key_tokens[: weights.shape[1]]
    chapter.figure(
        "open-map",
        corner_figure(weights, *tokens, names),
        layer=view.layer + 1,
        head=view.head + 1,
        sum=f"{float(weights.sum(axis=1).max()):.4f}",
    )


def link_to_vision(chapter: Chapter, card: HubCard) -> None:
    """Link to the vision chapter with this model."""
    label, parameters = chapter.words("open-vision"), {"vt-lab": card.name}
    st.page_link(page("vision-transformer"), label=label, icon=":material/arrow_forward:", query_params=parameters)


def link_to_heads(chapter: Chapter, model: HubModelSpec) -> None:
    """Link to the chapter on heads with this model."""
    if model.folder:
        parameters = {"hs-model": "lab", "hs-folder": model.folder}
    elif model.revision:
        parameters = {"hs-model": "lab", "hs-lab": model.name, "hs-revision": model.revision}
    elif model.name in scanned_models():
        parameters = {"hs-model": model.name}
    else:
        parameters = {"hs-model": "lab", "hs-lab": model.name}
    label, icon = chapter.words("open-heads"), ":material/arrow_forward:"
    st.page_link(page("heads"), label=label, icon=icon, query_params=parameters)
