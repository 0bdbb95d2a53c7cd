"""What the model lab shows of a model and of a run: its card, what came out, all heads at a glance, the next words."""

from __future__ import annotations

import hashlib

import streamlit as st

from asking.hub import CLAIMED_ROWS, LabInput
from pages.model_lab import figures
from pages.model_lab.models import hub_look
from ui.chapter import Chapter
from ui.compute import in_a_slot
from ui.controls import escape
from viz_core.figures.bars import bars_figure
from viz_core.hub import HubCard, HubRun, NextWord, human_bytes
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState

_NEXT_WORDS = 12


def model_card(chapter: Chapter, card: HubCard) -> None:
    """What there is to know of a model before trusting its maps."""
    words = chapter.words
    layers = " + ".join(str(count) for count in card.num_layers.values())
    grouped = card.num_key_heads != card.num_heads
    heads = words("heads-grouped", heads=card.num_heads, keys=card.num_key_heads) if grouped else card.num_heads
    schemes = ", ".join(words(f"scheme.{scheme}") for scheme in card.positions) or words("scheme.none")
    if card.window:
        schemes = words("scheme-window", schemes=schemes, window=f"{card.window:,}")
    vision = card.kind == "vision"
    reads = (
        words("reads-pictures", size=_times(card.picture_size), patch=_times(card.patch_size))
        if vision
        else words("reads-text", tokenizer=escape(card.tokenizer), size=f"{card.vocabulary_size:,}")
    )
    with st.expander(
        words(
            "card-title", model=escape(card.name), layers=layers, heads=heads, parameters=_short(card.num_parameters)
        ),
        icon=":material/badge:",
    ):
        chapter.text(
            "card",
            architecture=card.architecture,
            kind=words(f"kind.{card.kind}"),
            layers=layers,
            heads=heads,
            width=f"{card.width:,}",
            parameters=f"{card.num_parameters:,}",
            positions=schemes,
            reads=reads,
            limit=words("limit", count=f"{card.max_tokens:,}") if card.max_tokens else words("no-limit"),
            licence=escape(card.licence) if card.licence else words("no-licence"),
            revision=escape(card.revision) if card.revision else words("no-revision"),
            source=words(f"source.{card.source}"),
            device=escape(card.device),
            precision=card.precision,
            memory=human_bytes(card.memory),
            recording=words("recording-maps" if card.recording == "maps" else "recording-keys"),
        )


def outcome(chapter: Chapter, card: HubCard, asked: LabInput, run: HubRun) -> None:
    """What the model made of its input, and what the recording holds."""
    words = chapter.words
    if run.image is not None:
        st.image(run.image, width=260, caption=words("seen"))
    if card.head == "words":
        written = escape(run.text.strip()).replace("\n", "  \n")
        st.markdown(words("written", text=written) if written else words("nothing-written"))
    whole = sum(4 * call.num_heads * call.num_queries * call.num_keys for call in run.trace)
    tokens = len(run.tokens) + len(run.target_tokens)
    notes = [
        words(
            "measured",
            tokens=f"{tokens:,}",
            heads=f"{sum(call.num_heads for call in run.trace):,}",
            held=human_bytes(hub_look(asked, "held")),
            whole=human_bytes(whole),
        )
    ]
    if not run.complete:
        notes.append(words("incomplete"))
    st.caption("  \n".join(notes))
    if run.labels:
        top = run.labels[:8]
        names = [label.text for label in top]
        chapter.figure(
            "labels",
            bars_figure(
                names, [label.probability for label in top], names[0], words("figure.class"), words.group("figure")
            ),
            first=escape(names[0]),
            probability=f"{top[0].probability:.2f}",
        )


def claims(chapter: Chapter, card: HubCard, run: HubRun, residuals: dict[str, float]) -> None:
    """What must be true of these maps; of long ones the last rows are taken, which are the hardest."""
    with chapter.claims():
        rows = min(CLAIMED_ROWS, max(call.num_queries for call in run.trace))
        tolerance = 1e-5 if card.precision == "float32" else 1e-3
        heads = sum(call.num_heads for call in run.trace)
        chapter.claim("rows", residuals["rows"], tolerance, heads=f"{heads:,}", rows=rows)
        if card.kind in ("decoder", "encoder-decoder"):
            chapter.claim("future", residuals["future"], 0.0)


def fingerprints(chapter: Chapter, groups: tuple[MapGroup, ...], view: ViewState) -> None:
    """One measure of every head of the kind that is open above, as a map of layers by heads."""
    group = next(group for group in groups if group.id == view.group)
    chapter.text("fingerprints", kind=group.label)
    measures = in_a_slot(lambda: figures.measured(group), "fingerprints", ("fingerprints", group.stamp), "measuring")
    measure = str(chapter.controls.choice("measure", tuple(measures), next(iter(measures))))
    values = measures[measure]
    layer, head = divmod(int(values.argmax()), values.shape[1])
    chapter.text(f"about.{measure}")
    chapter.figure(
        "fingerprints",
        figures.fingerprint_figure(values, measure, chapter.words.group("figure")),
        measure=chapter.words(f"option.{measure}"),
        layers=values.shape[0],
        heads=values.shape[1],
        layer=layer + 1,
        head=head + 1,
        most=f"{values[layer, head]:.2f}",
        least=f"{values.min():.2f}",
    )


def next_words(chapter: Chapter, asked: LabInput, run: HubRun) -> None:
    """What the model would say after any of its last tokens."""
    read = run.decoder_tokens or run.tokens
    count = len(run.output)
    read, first = read[-count:], len(read) - count
    chapter.text("next")
    place = count - 1
    if count > 1:
        place = int(chapter.controls.slider("place", first + 1, first + count, first + count)) - first - 1
    temperature = chapter.controls.slider("warmth", 0.1, 3.0, 1.0, 0.1)
    words: tuple[NextWord, ...] = hub_look(asked, "next-words", place, _NEXT_WORDS, temperature)
    came = run.target_tokens[place] if run.target_tokens else read[place + 1] if place + 1 < count else None
    names = [word.token.label for word in words]
    labels = chapter.words.group("figure")
    chapter.figure(
        "next",
        bars_figure(names, [word.probability for word in words], came.label if came else None, labels["next"], labels),
        token=escape(read[place].label),
        number=first + place + 1,
        first=escape(names[0]),
        probability=f"{words[0].probability:.3f}",
        logit=f"{words[0].logit:.2f}",
        came=escape(came.label) if came else chapter.words("not-yet"),
        share=f"{sum(word.probability for word in words):.2f}",
    )
    st.dataframe(_table(chapter, words), hide_index=True, key=chapter.controls.key(f"logits-{_digest(names)}"))


def _table(chapter: Chapter, words: tuple[NextWord, ...]) -> dict[str, list[object]]:
    names = chapter.words.group("figure")
    return {
        names["next"]: [word.token.label for word in words],
        names["logit"]: [round(word.logit, 3) for word in words],
        names["probability"]: [round(word.probability, 5) for word in words],
    }


def _digest(names: list[str]) -> str:
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:8]


def _times(size: tuple[int, int] | None) -> str:
    return f"{size[0]} × {size[1]}" if size else "?"


def _short(count: int) -> str:
    """ "22.7 M", "1.2 B": parameters in a few characters."""
    return f"{count / 1e9:.1f} B" if count >= 1e9 else f"{count / 1e6:.1f} M" if count >= 1e5 else f"{count:,}"
