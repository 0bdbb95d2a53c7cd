"""Result of a run: output, size of the recording, claims about its maps, next words, and the logit lens."""

import hashlib
from functools import cache

import streamlit as st

from pages.model_lab.figures import corner_figure
from serving.requests.hub import HubModelSpec, HubRequest
from ui.blocks.figures import bars_figure, lens_figure
from ui.blocks.translation import choose_token
from ui.chapter.chapter import Chapter
from ui.chapter.contents import page
from ui.compute.heads import scanned_models
from ui.compute.models import attempted, evaluate
from ui.text.head_names import layer_place
from ui.text.markdown import escape
from ui.text.model_card import class_label
from ui.text.words import Words
from viz_core.hub import HubCard, HubModel, HubRun, NextWord, human_bytes
from viz_core.lab.circuits import through_the_layers
from viz_core.lab.runs import CLAIMED_ROWS, broken_residuals, corner_of_map, map_residuals, recorded_bytes
from viz_core.maps.word_maps import is_word
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
    """Notes: size of the recording, cut text, unknown tokens, and whether recording changed the output."""
    words = chapter.words
    lines, verified = [_measured(words, run, evaluate(request, recorded_bytes))], run.trace.verification
    if verified is not None and verified.output_error is not None:
        errors = {"output": f"{verified.output_error:.0e}", "maps": f"{verified.map_error or 0:.0e}"}
        lines.append(words("verified" if verified.map_error is None else "verified-maps", **errors))
    elif verified is not None:
        lines.append(words("not-verified"))
    if not run.complete:
        lines.append(words("incomplete", limit=request.inputs.budget))
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
    """Link to the chapter on heads with this model, unless a pattern finds its tokens, which is not known there."""
    if model.pattern:
        return
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


_NEXT_WORDS = 12


def next_words(chapter: Chapter, request: HubRequest, run: HubRun) -> None:
    """Show the likeliest words after any of the last tokens."""
    read = run.decoder_tokens or run.tokens
    count = len(run.output)
    read, first = read[-count:], len(read) - count
    chapter.text("next")
    place = before_writing(run)
    if count > 1:
        tokens = [token.label for token in run.decoder_tokens or run.tokens]
        place = choose_token(chapter, "place", tokens, first, first + place) - first
    temperature = chapter.controls.slider("warmth", 0.1, 3.0, 1.0, 0.1)
    chapter.lazy("next-words", lambda: _likeliest(chapter, request, run, place, temperature), 900)


def before_writing(run: HubRun) -> int:
    """The place, among those with an output, after which the model wrote its first token; the last if it wrote none."""
    if run.target_tokens:
        return 0
    count = len(run.output)
    first = len(run.tokens) - count
    return run.num_prompt_tokens - 1 - first if first < run.num_prompt_tokens < len(run.tokens) else count - 1


def _likeliest(chapter: Chapter, request: HubRequest, run: HubRun, place: int, temperature: float) -> None:
    """The likeliest words after a token, drawn and listed."""
    read = run.decoder_tokens or run.tokens
    count = len(run.output)
    read, first = read[-count:], len(read) - count
    words = evaluate(request, HubModel.next_words, place, _NEXT_WORDS, temperature)
    after = run.target_tokens[place] if run.target_tokens else read[place + 1] if place + 1 < count else None
    names = [word.token.label for word in words]
    labels = chapter.words.group("figure")
    chapter.figure(
        "next",
        bars_figure(
            names, [word.probability for word in words], after.label if after else None, labels["next"], labels
        ),
        token=escape(read[place].label),
        number=first + place + 1,
        first=escape(names[0]),
        probability=f"{words[0].probability:.3f}",
        logit=f"{words[0].logit:.2f}",
        came=escape(after.label) if after else chapter.words("not-yet"),
        share=f"{sum(word.probability for word in words):.2f}",
    )
    table, number = _table(chapter, words), st.column_config.NumberColumn(format="localized")
    key = chapter.controls.key(f"logits-{_digest(names)}")
    st.dataframe(table, hide_index=True, key=key, column_config=dict.fromkeys(list(table)[1:], number))


def _table(chapter: Chapter, words: tuple[NextWord, ...]) -> dict[str, list[object]]:
    names = chapter.words.group("figure")
    return {
        names["next"]: [word.token.label for word in words],
        names["logit"]: [round(word.logit, 3) for word in words],
        names["probability"]: [round(word.probability, 5) for word in words],
    }


def _digest(names: list[str]) -> str:
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:8]


_COLUMNS = 12  # as many as can be read side by side
_ROUNDING = {"float32": 1e-4}


def lens(chapter: Chapter, card: HubCard, request: HubRequest) -> None:
    """Show the prediction after each layer, and that the last one equals the model's."""
    labels = chapter.words.group("figure")
    seen = attempted(lambda: evaluate(request, through_the_layers))
    if seen is None:  # no norm gives its output, as with weights that are no numbers
        return
    chapter.text("lens")
    last = seen.tokens[-1][-_COLUMNS:]
    earlier = [row[-_COLUMNS:] for row in seen.tokens[:-1]]
    early = sum(token in {row[place] for row in earlier} for place, token in enumerate(last))
    # The example in the caption follows a word, where there is one: after an end mark a model may write anything.
    words = [place for place in range(-len(last), 0) if is_word(seen.read[place])]
    at = words[-1] if words else -1
    first = next(i for i, row in enumerate(seen.tokens) if row[at] == last[at])
    chapter.figure(
        "lens",
        lens_figure(
            [row[-_COLUMNS:] for row in seen.tokens],
            seen.probabilities[:, -_COLUMNS:],
            seen.final_word[:, -_COLUMNS:],
            seen.read[-_COLUMNS:],
            labels["token"],
            labels,
            layers_across=len(seen.tokens) <= len(last),  # the shorter side across: a phone is narrow
        ),
        count=len(last),
        early=early,
        layers=len(seen.tokens) - 1,
        token=escape(last[at]),
        read=escape(seen.read[at]),
        first=layer_place(first) if first else labels["input"],
    )
    with chapter.claim_row("claims-lens"):
        chapter.claim("lens", seen.residual, _ROUNDING.get(card.precision, 0.1))
