"""All heads in one batch against one after the other: the same numbers in different times."""

from __future__ import annotations

from collections.abc import Callable

from pages.multi_head import figures
from pages.multi_head.inputs import LayerInputs
from ui.blocks.stopwatch import StepwiseRun, stopwatch
from ui.chapter.chapter import Chapter
from ui.compute.benchmark import Measurement, measure
from viz_core.lessons.multi_head.inputs import fresh_layer, random_tokens
from viz_core.lessons.multi_head.steps import one_head_at_a_time, rounding_bound

_TIMED_TOKENS = 128
_MORE_HEADS = (1, 2, 4, 8, 16, 32, 64)


def batch(chapter: Chapter, layer_inputs: LayerInputs) -> None:
    """All heads in one batch against one after the other: the same numbers in different times."""
    chapter.text("batch", heads=layer_inputs.num_heads, products=2 * layer_inputs.num_heads)
    with chapter.claim_row("claims-batch"):
        chapter.claim(
            "batch", lambda: _loop_error(layer_inputs), rounding_bound(layer_inputs.steps), heads=layer_inputs.num_heads
        )
    width = layer_inputs.num_hiddens
    stopwatch(chapter, "race", lambda: _race(width), lambda run: _draw_race(chapter, run))


def _loop_error(layer_inputs: LayerInputs) -> float:
    """max |one head at a time - all at once|."""
    return float((one_head_at_a_time(layer_inputs.layer, layer_inputs.inputs) - layer_inputs.steps.output).abs().max())


def _race(width: int) -> StepwiseRun[Measurement]:
    """Time both ways for every number of heads; to the stopwatch, the length is the number of heads."""
    heads = [h for h in _MORE_HEADS if width % h == 0]
    X = random_tokens(_TIMED_TOKENS, width).X[None]

    def prepare(name: str, num_heads: int) -> Callable[[], object]:
        layer = fresh_layer(width, num_heads)
        return (lambda: layer(X, X, X)) if name == "batch" else (lambda: one_head_at_a_time(layer, X))

    series = measure(("batch", "loop"), heads, prepare, total_seconds=10.0)
    return StepwiseRun(series, {"n": _TIMED_TOKENS, "d": width}, 2 * len(heads))


def _draw_race(chapter: Chapter, run: StepwiseRun[Measurement]) -> None:
    figure = figures.batch_figure(run.measurements, chapter.words.group("figure"))
    chapter.figure("race", figure, done=len(run.measurements))
