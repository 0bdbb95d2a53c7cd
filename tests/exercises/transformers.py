"""The book's exercises of sections 11.7 to 11.9."""

from __future__ import annotations

from functools import cache
from statistics import fmean

from pages.architectures import exercises as long_texts
from pages.transformer import exercises as scores
from tests.exercises.exercise import Exercise
from ui.chapter.book_exercises import recorded
from viz_core.hub import HubModel, load_hub
from viz_core.lessons.architectures.cheaper import held, savings
from viz_core.lessons.model_lab.experiments import leak, one_stack, read_at, right_choices, with_encoder
from viz_core.lessons.model_lab.mixed_batch import mixed_batch
from viz_core.lessons.transformer.costs import TransformerSizes, additive_cost, depth_cost, dot_cost
from viz_core.lessons.vision_transformer.patches import picture_cost


@cache
def _model(name: str) -> HubModel:
    return load_hub(name, offline=True, device="cpu")


def _deeper() -> tuple[bool, ...]:
    """From 2 blocks to 4: seconds as recorded and work as counted, and the held-out loss of three seeds."""
    two, four = recorded().depths[2], recorded().depths[4]
    work = [depth_cost(depth, TransformerSizes())[1] for depth in (2, 4)]
    loss = fmean(four.held_out) / fmean(two.held_out)
    twice = 1.6 < four.seconds / two.seconds < 2.5 and 1.9 < work[1] / work[0] < 2.1
    assert fmean(four.training) / fmean(two.training) < loss  # it helps most with what it learns from
    return twice and loss < 0.6, twice and 0.95 < loss < 1, not twice


def _additive() -> tuple[bool, ...]:
    sizes = scores.TOKENS, scores.WIDTH, scores.HEADS
    dot, additive = dot_cost(*sizes), additive_cost(*sizes)
    assert additive.multiplications < 1.2 * dot.multiplications
    return (
        additive.largest < 1.2 * dot.largest,
        additive.parameters > 0.1 * 4 * scores.WIDTH**2,
        additive.largest == scores.WIDTH // scores.HEADS * dot.largest,
    )


def _halves() -> tuple[bool, ...]:
    """Which of them gives, at every place, what cannot know of a later word."""
    return leak(_model("reader-en")) == 0, leak(_model("writer-en")) == 0, leak(_model("transformer-en-fr")) == 0


def _long() -> tuple[bool, ...]:
    short, long = (held(n, 512, long_texts.HEADS) for n in (long_texts.SHORT, long_texts.LONG))
    return tuple(long[name] == 10_000 * short[name] for name in ("parameters", "keys", "weights", "path"))


def _cheaper() -> tuple[bool, ...]:
    found = savings(long_texts.TEXT, long_texts.HEAD_WIDTH, long_texts.TILE)
    same = [found[name].change < 1e-12 for name in ("window", "tiles", "linear")]
    assert all(found[name].held < found["whole"].held for name in ("window", "tiles", "linear"))
    return (*same, not any(same))


def _side() -> tuple[bool, ...]:
    times = picture_cost(192).multiplications / picture_cost(96).multiplications
    return tuple(abs(times / factor - 1) < 0.1 for factor in (2, 4, 16))


def _average() -> tuple[bool, ...]:
    gains = recorded().gains("average")
    return max(gains) < -0.1, min(gains) < 0 < max(gains) and max(map(abs, gains)) < 0.05, min(gains) > 0


def _settings() -> tuple[bool, ...]:
    changes = ("smaller-patches", "larger-patches", "deeper", "plain-descent")
    assert max(recorded().gains("deeper")) > 0 > min(recorded().gains("deeper"))
    return tuple(min(recorded().gains(change)) > 0 for change in changes)


def _tasks() -> tuple[bool, ...]:
    mixed = mixed_batch("encoder-decoder"), mixed_batch("decoder")
    both, alone = (max(each.apart, each.gradient) < 1e-9 for each in mixed)
    return not (both or alone), both and not alone, both and alone


def _jobs() -> tuple[bool, ...]:
    right = {name: fmean(found) for name, found in right_choices(_model("writer-en")).items()}
    return tuple(right[name] < 0.7 for name in ("agreement", "order", "sense", "world"))


def _readout() -> tuple[bool, ...]:
    first, last = (read_at(_model("writer-en"), place) for place in ("first", "last"))
    return last[0] > 0.9, first[-1] > 0.9, last[-1] > 0.9


def _one_row() -> tuple[bool, ...]:
    """What an encoder with a decoder lets a token see, and a decoder alone does not."""
    both, alone = with_encoder(8, 6), one_stack(8, 6)
    lost = both & ~alone
    assert leak(_model("reader-en")) > 0 == leak(_model("writer-en"))
    return bool(lost[:8, :8].any()), bool(lost[8:, :8].any()), bool(lost[8:, 8:].any())


EXERCISES = {
    "11.7, 1": Exercise("transformer", "deeper", "measured.deeper", _deeper),
    "11.7, 2": Exercise("transformer", "additive", "measured.additive", _additive),
    "11.7, 3": Exercise("model-lab", "halves", "measured.halves", _halves),
    "11.7, 4": Exercise("architectures", "long", "measured.long", _long),
    "11.7, 5": Exercise("architectures", "cheaper", "measured.cheaper", _cheaper),
    "11.8, 1": Exercise("vision-transformer", "side", "measured.side", _side),
    "11.8, 2": Exercise("vision-transformer", "average", "measured.average", _average),
    "11.8, 3": Exercise("vision-transformer", "settings", "measured.settings", _settings),
    "11.9, 1": Exercise("model-lab", "tasks", "measured.tasks", _tasks),
    "11.9, 2": Exercise("model-lab", "jobs", "measured.jobs", _jobs),
    "11.9, 3": Exercise("model-lab", "readout", "measured.readout", _readout),
    "11.9, 4": Exercise("model-lab", "one-row", "measured.one-row", _one_row),
}
