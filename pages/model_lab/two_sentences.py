"""Two sentences that differ in a word: what of one, patched into the other, changes the next word."""

from __future__ import annotations

from pages.model_lab.model_choice import report_errors
from serving.requests.hub import HubModelSpec
from serving.requests.two_sentences import circuit, compare, predictions, sweep
from ui.blocks.two_sentences import Experiment, draw_experiment, read_sentences
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate_model
from viz_core.hub import HubCard

_STARTS = {
    "decoder": ("The girls in the house", "The girl in the house"),
    "encoder-decoder": ("The cat is black.", "The dog is black."),
}


def takes_two_sentences(card: HubCard) -> bool:
    """Whether a model reads a text and predicts the next word."""
    return card.head == "words" and card.kind in _STARTS


def two_sentences(chapter: Chapter, card: HubCard, model: HubModelSpec) -> None:
    """Draw the inputs and, once they can be compared, the sweep."""
    sentences = read_sentences(*_STARTS[card.kind])

    def experiment() -> Experiment:
        return Experiment(
            evaluate_model(model, compare, sentences),
            lambda stack, what: evaluate_model(model, sweep, sentences, stack, what).numpy(),
            lambda *cell: evaluate_model(model, predictions, sentences, *cell),
            lambda count: evaluate_model(model, circuit, sentences, count),
        )

    report_errors(chapter, lambda: draw_experiment(chapter, experiment()))
