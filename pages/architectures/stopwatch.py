"""Real layers timed on this machine, beside the counted multiplications."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st
import torch

from pages.architectures.cost_figures import measured_figure
from pages.architectures.sizes import SizeInputs
from ui.blocks.stopwatch import StepwiseRun, stopwatch
from ui.chapter.chapter import Chapter
from ui.compute.benchmark import Measurement, growth, measure
from ui.text.errors import explain
from ui.text.terms import device_name
from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, layer_cost
from viz_core.lessons.architectures.experiments import timed_call
from viz_core.runtime.device import best_device, describe_device

_TIMED_HEADS = 4


def timing(chapter: Chapter, inputs: SizeInputs) -> None:
    """Real layers timed on this machine, beside the counted multiplications."""
    chapter.text("stopwatch")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        most = chapter.controls.choice("most", (256, 1024, 4096), 1024)
        width = chapter.controls.choice("width", (64, 128, 256), 128)
    try:
        device = best_device()
    except ValueError as error:  # the message names those there are
        st.error(explain(error), icon=":material/memory:")
        return
    lengths = [2**power for power in range(4, most.bit_length())]
    sizes = LayerSizes(most, width, inputs.sizes.k, inputs.sizes.r)
    chapter.text("stopwatch-where", device=device_name(describe_device(device)))
    stopwatch(
        chapter,
        "stopwatch",
        lambda: _begin(sizes, lengths, device),
        lambda run: _draw_times(chapter, run),
    )


def _begin(sizes: LayerSizes, lengths: list[int], device: torch.device) -> StepwiseRun[Measurement]:
    def prepare(name: str, n: int) -> Callable[[], object]:
        return timed_call(name, n, sizes, _TIMED_HEADS, device)

    settings = {"most": sizes.n, "d": sizes.d, "k": sizes.k, "r": sizes.r}
    return StepwiseRun(
        measure(ARCHITECTURES, lengths, prepare, device=device), settings, len(ARCHITECTURES) * len(lengths)
    )


def _draw_times(chapter: Chapter, run: StepwiseRun[Measurement]) -> None:
    names = chapter.words.group("figure")
    sizes = LayerSizes(run.settings["most"], run.settings["d"], run.settings["k"], run.settings["r"])
    # While it runs, whole lengths only: a picture that changes with every point has no time to be painted.
    count = len(run.measurements)
    shown = run.measurements[: count - count % len(ARCHITECTURES) if run.state == "running" else count]
    chapter.figure("measured", measured_figure(shown, sizes.n, names), done=len(shown))
    if run.state != "running" and run.measurements:
        number = st.column_config.NumberColumn(format="localized")
        table = _growth_table(chapter, run.measurements, sizes)
        columns = dict.fromkeys(list(table.columns)[2:], number)
        st.dataframe(table, hide_index=True, height="content", column_config=columns)
        chapter.guidance("growth")


def _growth_table(chapter: Chapter, measurements: list[Measurement], sizes: LayerSizes) -> pd.DataFrame:
    """The factor by which twice the tokens slow each layer at its longest length, measured and counted."""
    words = chapter.words.group("column")
    rows = []
    for name in ARCHITECTURES:
        own = [m for m in measurements if m.name == name and m.seconds is not None]
        if len(own) < 2:
            continue
        before, after = (
            layer_cost(name, LayerSizes(m.n, sizes.d, sizes.k, sizes.r)).counted for m in (own[-2], own[-1])
        )
        rows.append(
            {
                words["layer"]: chapter.words(f"figure.{name}"),
                words["tokens"]: f"{own[-2].n:,} → {own[-1].n:,}",
                words["measured"]: round(growth(own[-2], own[-1]), 2),
                words["counted"]: round(after / before, 2),
                words["spread"]: round(max((m.slowest or 0) / (m.seconds or 1) for m in own[-2:]), 2),
            }
        )
    return pd.DataFrame(rows, columns=[words[name] for name in ("layer", "tokens", "measured", "counted", "spread")])
