"""The book's exercises on pretraining: experiments on the text models that ship, whatever model is open above."""

from __future__ import annotations

from functools import partial

from pages.model_lab.exercise_figures import seen_figure
from pages.model_lab.model_choice import report_errors
from serving.requests.hub import OwnModelSpec
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate_model
from viz_core.lessons.model_lab.experiments import (
    TEXTS,
    leak,
    one_stack,
    perplexity,
    questions_and_statements,
    read_at,
    right_choices,
    sentence_pairs,
    with_encoder,
)
from viz_core.lessons.model_lab.mixed_batch import TASKS, mixed_batch

WRITER, READER, BOTH = (OwnModelSpec(name, offline=True) for name in ("writer-en", "reader-en", "transformer-en-fr"))
SOURCE, TARGET = 8, 6  # tokens


def on_architectures(chapter: Chapter) -> None:
    """What encoders and decoders can see. Models run once a reader has answered."""
    chapter.exercise("halves", reveal=partial(report_errors, chapter, partial(_halves, chapter)))
    chapter.exercise("one-row", reveal=partial(report_errors, chapter, partial(_one_row, chapter)))


def on_uses(chapter: Chapter) -> None:
    """What pretrained models are used for. Models run once a reader has answered."""
    chapter.exercise("tasks", reveal=partial(_tasks, chapter))
    chapter.exercise("jobs", reveal=partial(report_errors, chapter, partial(_jobs, chapter)))
    chapter.exercise("readout", reveal=partial(report_errors, chapter, partial(_readout, chapter)))


def _halves(chapter: Chapter) -> None:
    """What places before a word know of it, in an encoder, a decoder, and both."""
    encoder, decoder, both = (evaluate_model(model, leak) for model in (READER, WRITER, BOTH))
    value, count = evaluate_model(WRITER, perplexity, TEXTS[0])
    chapter.text(
        "measured.halves",
        first=TEXTS[0],
        second=TEXTS[1],
        encoder=f"{encoder:.2f}",
        decoder=f"{decoder:.2f}",
        both=f"{both:.2f}",
        perplexity=f"{value:.1f}",
        count=count,
    )


def _tasks(chapter: Chapter) -> None:
    """Two tasks in one minibatch, for both kinds of model."""
    (first, first_says), (second, second_says) = TASKS
    both, alone = mixed_batch("encoder-decoder"), mixed_batch("decoder")
    chapter.text(
        "measured.tasks",
        first=f"{first} → {first_says}",
        second=f"{second} → {second_says}",
        both_apart=f"{both.apart:.0e}",
        both_gradient=f"{both.gradient:.0e}",
        alone_apart=f"{alone.apart:.0e}",
        alone_gradient=f"{alone.gradient:.0e}",
    )


def _jobs(chapter: Chapter) -> None:
    """How often the likelier sentence is the right one, by what is wrong with the other."""
    right = evaluate_model(WRITER, right_choices)
    values = {name: f"{sum(found)}/{len(found)}" for name, found in right.items()}
    examples = {f"{name}_{i}": text for name, pairs in sentence_pairs().items() for i, text in enumerate(pairs[0], 1)}
    chapter.text("measured.jobs", **values, **examples)


def _readout(chapter: Chapter) -> None:
    """How well one token's state tells questions from statements, at each depth."""
    found = {
        "first": evaluate_model(WRITER, read_at, "first"),
        "last": evaluate_model(WRITER, read_at, "last"),
        "reader": evaluate_model(READER, read_at, "first"),
    }
    values = {f"{name}_{i}": f"{right:.0%}" for name, row in found.items() for i, right in enumerate(row)}
    chapter.text("measured.readout", count=len(questions_and_statements()[0]), **values)


def _one_row(chapter: Chapter) -> None:
    """Who may look at whom, drawn; and what that means for a word of the source."""
    maps = {"with-encoder": with_encoder(SOURCE, TARGET).numpy(), "one-stack": one_stack(SOURCE, TARGET).numpy()}
    within = {name: int(seen[:SOURCE, :SOURCE].sum()) for name, seen in maps.items()}
    names = chapter.words.group("figure")
    chapter.figure(
        "seen",
        seen_figure(maps, SOURCE, names),
        source=SOURCE,
        target=TARGET,
        both=within["with-encoder"],
        alone=within["one-stack"],
    )
    encoder, decoder = evaluate_model(READER, leak), evaluate_model(WRITER, leak)
    chapter.text(
        "measured.one-row", encoder=f"{encoder:.2f}", decoder=f"{decoder:.2f}", first=TEXTS[0], second=TEXTS[1]
    )
