"""The main figure, a layer as a signed map and as a state, and the sections: costs, decay, erasing, recall, models."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from PIL import Image
from torch import Tensor

from pages.linear_attention.figures import (
    decay_figure,
    errors_figure,
    map_figure,
    numbers_figure,
    recall_figure,
    state_figure,
)
from serving.requests.models import NoModel
from ui.blocks.over_picture import signed_image
from ui.blocks.stopwatch import LiveTraining, stopwatch, training
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate_model
from ui.compute.slots import is_hosted
from ui.text.numbers import localised
from ui.widgets.choices import Mark, Marks
from viz_core.attention.linear import retention_decay
from viz_core.lessons.linear_attention import (
    CHANCE,
    CHUNK,
    CONFIGURATIONS,
    LETTERS,
    NUM_KEYS,
    NUM_VALUES,
    PAIRS,
    RECALL_RULES,
    RULES,
    TOKENS,
    WIDTHS,
    Forms,
    RecallPlan,
    RecallRun,
    RuleName,
    Stream,
    all_forms,
    decay_by_age,
    draw_numbers,
    draw_stream,
    head_cost,
    map_error,
    model_layers,
    returned,
)

_OF_SUMS = {"rule": "sum", "keys": "separate", "seed": 2}
ANSWERS = Marks(
    "figure-state",
    tuple(Mark((-0.4, 0.4), (height - 0.4, height + 0.4)) for height in (16 / 3, 7, 16)),
    {**_OF_SUMS, "time": 6},
    {**_OF_SUMS, "time": 10},
)
"""Heights of the bar of A, for which tokens 6 and 10 ask."""

_FADED = 0.6  # a decay that leaves less to erase
_ROUNDING = 1e-12  # relative, of sums of 16 terms in float64


@dataclass(frozen=True)
class Layer:
    """What the controls ask for; `time` counts from 0."""

    rule: RuleName
    time: int
    decay: float
    seed: int
    overlapping: bool = False  # keys, each with a vector; else one number a key

    def stream(self) -> Stream:
        return draw_stream(self.seed) if self.overlapping else draw_numbers(self.seed)

    def forms(self, broken: bool = False) -> Forms:
        stream = self.stream()
        return all_forms(stream.operator(self.rule, self.decay), stream.values, broken)


def choose_layer(chapter: Chapter) -> tuple[Layer, str]:
    """Draw the controls; return the layer, and what is broken of it. Only the delta rule has a removal to leave out.

    A link that breaks it without naming a rule opens on that rule.
    """
    controls = chapter.controls
    time = int(controls.slider("time", 1, TOKENS, 12)) - 1
    opens_on: RuleName = "delta" if controls.key("break") in st.query_params else "sum"
    rule = controls.choice("rule", RULES, opens_on)
    with controls.more():
        decay = float(controls.slider("decay", 0.5, 1.0, 0.9, 0.01))
        overlapping = controls.choice("keys", ("separate", "overlapping"), "separate") == "overlapping"
        seed = int(controls.number("seed", 0, 999, 2))
    broken = chapter.break_it("no-removal") if rule == "delta" else ""
    return Layer(rule, time, decay, seed, overlapping), broken


def main_figure(chapter: Chapter, layer: Layer, compared: bool, setting: str) -> None:
    """Draw the map, the state unless maps are compared, and the claims."""
    forms, stream = layer.forms(bool(setting)), layer.stream()
    values = about_row(forms, stream, layer.time)
    names = chapter.words.group("figure")
    if not compared and layer.rule != "sum":  # whose formula stands beside the definition
        chapter.text(f"of-rule.{layer.rule}", decay=f"{layer.decay:g}")
    output = "" if layer.overlapping or setting else localised(values["output"], chapter.words.language)
    picture = map_figure(forms.map, stream, layer.time, names, output)
    if compared:
        faded = replace(layer, decay=_FADED).forms(broken=True)
        errors: dict[str, Any] = {"error": f"{forms.map_error:.0%}", "faded": f"{faded.map_error:.0%}"}
        chapter.figure("map-broken" if setting else _by_keys("map", layer), picture, **errors, **values)
    else:
        left, right = st.columns([3, 2], gap="large")
        with left:
            chapter.figure(_by_keys("map", layer), picture, **values)
        with right:
            _state(chapter, layer, forms.states, values)
    with chapter.claim_row("main"):
        chapter.claim("same", forms.map_error, _ROUNDING)
        chapter.claim("chunks", forms.chunk_error, _ROUNDING, size=CHUNK)
        chapter.claim("causal", forms.later_weight, 0.0)


def _state(chapter: Chapter, layer: Layer, states: Tensor, values: dict[str, Any]) -> None:
    """The state after the chosen token, as numbers where each has a key of its own."""
    names = chapter.words.group("figure")
    state, limit = states[layer.time], float(states.abs().max())
    figure = (
        state_figure(state, limit, names)
        if layer.overlapping
        else numbers_figure(state[:, 0], layer.stream().wanted[layer.time], limit, names)
    )
    size: dict[str, Any] = {"rows": state.shape[0], "columns": state.shape[1], "count": state.numel()}
    chapter.figure(_by_keys("state", layer), figure, **size, **values)
    if layer.overlapping:
        chapter.guidance("state", **size, **values)


def _by_keys(figure: str, layer: Layer) -> str:
    """The name of a figure, whose words differ with the keys."""
    return f"{figure}-overlapping" if layer.overlapping else figure


def about_row(forms: Forms, stream: Stream, time: int) -> dict[str, Any]:
    """The row of one token: output, weight on the last value of the letter it asks for, on earlier ones, on others."""
    letter = stream.wanted[time]
    last = stream.last_written(letter, time)
    row = forms.map[time, : time + 1].tolist()
    earlier = sum(row[t] for t in range(time + 1) if stream.written[t] == letter and t != last)
    others = sum(abs(row[t]) for t in range(time + 1) if stream.written[t] != letter)
    shares = {"last": row[last] if last is not None else 0.0, "earlier": earlier, "others": others}
    return {
        "time": time + 1,
        "letter": LETTERS[letter],
        "output": f"{forms.outputs[time, 0]:.3g}",
        **{name: f"{number + 0.0:.2f}" for name, number in shares.items()},
    }


NAME = "train"
_STEPS = (100, 200, 400)


def recall(chapter: Chapter) -> None:
    """Draw the settings, the start button, and the accuracy by number of pairs and by size of the state."""
    controls = chapter.controls
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        writes = 2 if controls.choice("writes", ("once", "again"), "once") == "again" else 1
        width = int(controls.select_slider("size", WIDTHS, 16))
        pairs = int(controls.select_slider("pairs", PAIRS, 24))
        with controls.more():
            steps = int(controls.select_slider("steps", _STEPS[: 2 if is_hosted() else 3], 200))
            seed = int(controls.slider("train-seed", 0, 9, 0))
    chapter.text("recall", keys=NUM_KEYS, values=NUM_VALUES)

    def begin() -> LiveTraining[RecallRun]:
        run = RecallRun(RecallPlan(steps, writes, seed))
        return LiveTraining(training([run]), {}, steps, kind="learning", runs={NAME: run})

    draw = partial(_draw, chapter, width, pairs)
    stopwatch(chapter, NAME, begin, draw, ":material/model_training:", resumable=True)


def _draw(chapter: Chapter, width: int, pairs: int, live: LiveTraining[RecallRun]) -> None:
    """Name what was trained (the controls may have changed since) and draw its last test."""
    run, names = live.first, chapter.words.group("figure")
    if not run.tests:
        return
    step, found = next(reversed(run.tests.items()))
    written = chapter.words(f"option.{'once' if run.plan.writes == 1 else 'again'}")
    seconds = f"{live.measurements[-1]:.0f}" if live.measurements else "0"
    chapter.text("own-run", step=step, writes=written, seed=run.plan.seed, seconds=seconds)
    at_width, at_pairs = found[:, WIDTHS.index(width)], found[:, :, PAIRS.index(pairs)]
    ends: dict[str, Any] = {
        rule: f"{share:.0%}"
        for rule, share in zip(RECALL_RULES, found[:, WIDTHS.index(width), PAIRS.index(pairs)].tolist(), strict=True)
    }
    values = {"width": width, "pairs": pairs, "numbers": f"{width**2:,}", "chance": f"{CHANCE:.0%}", **ends}
    strength = float(run.layers["delta", width].strength.detach())
    left, right = st.columns(2, gap="medium")
    with left:
        curves = {names[rule]: curve for rule, curve in zip(RECALL_RULES, at_width.tolist(), strict=True)}
        chapter.figure("recall", recall_figure(curves, PAIRS, pairs, names, names["pairs"]), **values)
    with right:
        curves = {names[rule]: curve for rule, curve in zip(RECALL_RULES, at_pairs.tolist(), strict=True)}
        sizes = [size**2 for size in WIDTHS]
        figure = recall_figure(curves, sizes, width**2, names, names["numbers"], log=True)
        chapter.figure("recall-size", figure, strength=f"{strength:.2f}", **values)


_REPLACE_ROUNDING = 1e-12


def erase_and_write(chapter: Chapter, layer: Layer) -> None:
    """Draw the states of addition and of the delta rule after the chosen token, and the errors of both."""
    orthogonal = chapter.controls.toggle("orthogonal")
    stream, names = draw_stream(layer.seed, orthogonal), chapter.words.group("figure")
    found = {names[rule]: returned(stream, rule, layer.time) for rule in ("sum", "delta")}
    written = LETTERS[stream.written[layer.time]]
    chapter.text("replace", time=layer.time + 1, letter=written)
    added, erased = found.values()
    limit = max(float(each.state.abs().max()) for each in found.values())
    for column, (name, each), figure in zip(st.columns(2), found.items(), ("added", "erased"), strict=True):
        with column:
            st.markdown(f"**{name}**")
            chapter.figure(figure, state_figure(each.state, limit, names, 320, named=False), time=layer.time + 1)
    apart = returned(draw_stream(layer.seed, orthogonal=True), "delta", layer.time)
    with chapter.claim_row("claims-replace"):
        chapter.claim("written", erased.errors[written], _REPLACE_ROUNDING, letter=written)
        chapter.claim("orthogonal", max(apart.errors.values()), _REPLACE_ROUNDING)
    chapter.figure(
        "errors",
        errors_figure({name: list(each.errors.values()) for name, each in found.items()}, list(added.errors), names),
        added=[f"{letter} {error:.2f}" for letter, error in added.errors.items()],
        erased=[f"{letter} {error:.2f}" for letter, error in erased.errors.items()],
    )


_ROW = 35  # pixels of a row of Streamlit's tables


def models(chapter: Chapter) -> None:
    """Draw a row for each model, counted in its default configuration."""
    chapter.text("models")
    chapter.lazy("models", lambda: _table(chapter), _ROW * (1 + len(CONFIGURATIONS)))


def _table(chapter: Chapter) -> None:
    words, rules = chapter.words.group("column"), chapter.words.group("rule")
    rows = [
        {
            words["model"]: each.model,
            words["rule"]: rules[each.rule],
            words["layers"]: each.layers,
            words["linear-layers"]: each.linear,
        }
        for each in evaluate_model(NoModel(), model_layers)  # where transformers is loaded, which takes seconds
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")


_LENGTHS = (256, 1024, 4096, 32_768, 262_144)
_WIDTHS = (16, 32, 64, 128, 256)


def costs(chapter: Chapter) -> None:
    """Draw the costs as a table, and where both are equal."""
    width = int(chapter.controls.select_slider("width", _WIDTHS, 128))
    equal = head_cost(2 * width - 1, width)
    chapter.text("cost", width=width, state=f"{width * width:,}")
    words = chapter.words.group("column")
    found = {n: head_cost(n, width) for n in _LENGTHS}
    columns = {
        words["tokens"]: list(found),
        **{
            words[name]: [getattr(cost, name) for cost in found.values()]
            for name in ("softmax", "linear", "cache", "state")
        },
    }
    number = st.column_config.NumberColumn(format="localized")
    st.dataframe(pd.DataFrame(columns), hide_index=True, height="content", column_config=dict.fromkeys(columns, number))
    with chapter.claim_row("claims-cost"):
        chapter.claim("equal", abs(equal.softmax - equal.linear), 0.0, n=f"{2 * width - 1:,}")


def sources(chapter: Chapter) -> None:
    """The decays of the first three heads."""
    chapter.sources({"retention": retention_decay(3).tolist()})


_HEADS, _AGES = 6, 256


def decay(chapter: Chapter) -> None:
    """Draw what is left of a token by its age, for each head, and the source's formula."""
    decays = retention_decay(_HEADS).tolist()
    label = chapter.words.group("figure")["head"]
    curves = {
        label.format(head=head + 1, decay=localised(f"{each:.4f}", chapter.words.language)): curve
        for head, (each, curve) in enumerate(zip(decays, decay_by_age(_HEADS, _AGES).numpy(), strict=True))
    }
    chapter.text("decay")
    with chapter.claim_row("claims-decay"):
        chapter.claim("age", map_error(_HEADS), 1e-12)
    spans = [f"{1 / (1 - each):,.0f}" for each in decays]
    chapter.figure("decay", decay_figure(curves, chapter.words.group("figure")), heads=_HEADS, spans=spans)
    sources(chapter)


def gallery_picture() -> Image.Image:
    """The signed map of the gated delta rule on the chapter's stream."""
    return signed_image(draw_stream(2).operator("delta", 0.9).map()[0, 0].float().numpy(), 1.0)
