"""Card of a loaded model."""

from __future__ import annotations

import streamlit as st

from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from ui.text.model_card import licence_of, title_of
from ui.text.terms import device_name
from ui.text.words import Words
from viz_core.hub import HubCard, human_bytes
from viz_core.trace.coverage import group_uncovered, ranges


def model_card(chapter: Chapter, card: HubCard) -> None:
    """Card of a loaded model."""
    words = chapter.words
    layers = " + ".join(str(count) for count in card.num_layers.values())
    grouped = card.num_key_heads != card.num_heads
    heads = words("heads-grouped", heads=card.num_heads, keys=card.num_key_heads) if grouped else card.num_heads
    schemes = [words(f"scheme.{scheme}") for scheme in card.positions] or words("scheme.none")
    if card.window:
        schemes = words("scheme-window", schemes=schemes, window=f"{card.window:,}")
    title = title_of(card.name)
    st.markdown(f"**{escape(title)}**" + (f"  `{card.name}`" if title != card.name else ""))
    chapter.text(
        "card",
        architecture=card.architecture,
        kind=words(f"kind.{card.kind}"),
        layers=layers,
        heads=heads,
        width=f"{card.width:,}",
        parameters=f"{card.num_parameters:,}",
        positions=schemes,
        reads=_reads(words, card),
        limit=_limit(words, card),
        licence=escape(licence_of(card.name, card.licence)) if card.licence else words("no-licence"),
        revision=escape(card.revision) if card.revision else words("no-revision"),
        source=words(f"source.{card.source}"),
        device=escape(device_name(card.device)),
        precision=card.precision,
        memory=human_bytes(card.memory),
        recording=words("recording-maps" if card.recording == "maps" else "recording-keys"),
    )
    for row, numbers in group_uncovered(card.unrecorded).items():
        layers = ranges(number + 1 for number in numbers).replace(" to ", "–")
        chapter.text(f"unrecorded.{row.code}", layers=layers, stack=escape(row.stack), module=escape(row.module))


def _reads(words: Words, card: HubCard) -> str:
    """What goes in."""
    size = f"{card.vocabulary_size:,}" if card.vocabulary_size else _times(card.picture_size)
    name = f"reads-{card.kind_class.reads}"
    return words(name, tokenizer=escape(card.tokenizer), size=size, patch=_times(card.patch_size))


def _limit(words: Words, card: HubCard) -> str:
    """How much it takes at once."""
    if card.sound_seconds is not None:
        return words("limit-seconds", seconds=f"{card.sound_seconds:g}")
    return words("limit", count=f"{card.max_tokens:,}") if card.max_tokens else words("no-limit")


def _times(size: tuple[int, int] | None) -> str:
    return f"{size[0]} × {size[1]}" if size else "?"
