"""The main figure: the same layer as a signed causal map and as a state, at one token."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from pages.linear_attention.figures import map_figure, state_figure
from ui.chapter.chapter import Chapter
from viz_core.lessons.linear_attention.forms import CHUNK, Forms, all_forms
from viz_core.lessons.linear_attention.stream import LETTERS, RULES, TOKENS, RuleName, Stream, draw_stream

_FADED = 0.6  # a decay that leaves less to erase
_ROUNDING = 1e-12  # relative, of sums of 16 terms in float64


@dataclass(frozen=True)
class Layer:
    """What the controls ask for; `time` counts from 0."""

    rule: RuleName
    time: int
    decay: float
    seed: int

    def stream(self) -> Stream:
        return draw_stream(self.seed)

    def forms(self, broken: bool = False) -> Forms:
        stream = self.stream()
        return all_forms(stream.operator(self.rule, self.decay), stream.values, broken)


def choose_layer(chapter: Chapter) -> tuple[Layer, str]:
    """Draw the controls; return the layer, and what is broken of it. Only the delta rule has a removal to leave out."""
    controls = chapter.controls
    time = int(controls.slider("time", 1, TOKENS, 12)) - 1
    rule = controls.choice("rule", RULES, "delta")
    with controls.more():
        decay = float(controls.slider("decay", 0.5, 1.0, 0.9, 0.01))
        seed = int(controls.number("seed", 0, 999, 2))
    broken = chapter.break_it("no-removal") if rule == "delta" else ""
    return Layer(rule, time, decay, seed), broken


def main_figure(chapter: Chapter, layer: Layer, compared: bool, setting: str) -> None:
    """Draw the map, the state unless maps are compared, and the claims."""
    forms, stream = layer.forms(bool(setting)), layer.stream()
    values = about_row(forms, stream, layer.time)
    names = chapter.words.group("figure")
    with chapter.claim_row("main"):
        chapter.claim("same", forms.map_error, _ROUNDING)
        chapter.claim("chunks", forms.chunk_error, _ROUNDING, size=CHUNK)
        chapter.claim("causal", forms.later_weight, 0.0)
    if compared:
        name = "map-broken" if setting else "map"
        figure = map_figure(forms.map, stream, layer.time, names)
        faded = replace(layer, decay=_FADED).forms(broken=True)
        chapter.figure(name, figure, error=f"{forms.map_error:.0%}", faded=f"{faded.map_error:.0%}", **values)
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        chapter.figure("map", map_figure(forms.map, stream, layer.time, names), **values)
    with right:
        state = forms.states[layer.time]
        figure = state_figure(state, float(forms.states.abs().max()), names)
        chapter.figure("state", figure, rows=state.shape[0], columns=state.shape[1], count=state.numel(), **values)


def about_row(forms: Forms, stream: Stream, time: int) -> dict[str, Any]:
    """The row of one token: weight on the last value of the letter it asks for, on earlier ones, and on others."""
    letter = stream.wanted[time]
    last = stream.last_written(letter, time)
    row = forms.map[time, : time + 1].tolist()
    earlier = sum(row[t] for t in range(time + 1) if stream.written[t] == letter and t != last)
    others = sum(abs(row[t]) for t in range(time + 1) if stream.written[t] != letter)
    numbers = {"last": row[last] if last is not None else 0.0, "earlier": earlier, "others": others}
    return {
        "time": time + 1,
        "letter": LETTERS[letter],
        **{name: f"{number + 0.0:.2f}" for name, number in numbers.items()},
    }
