"""Scoring functions: from the product of a query and a key to weights; below, masks, 1/sqrt(d), other scores."""

from pages.scoring_functions.parts import debugger, gaussian, output_diagram, sentences, toy
from pages.scoring_functions.scaling import scaling
from pages.scoring_functions.scores import heights, scoring_functions, sentence_weights, words
from pages.scoring_functions.softmax import claims, masked_softmax_card
from ui.chapter.chapter import Chapter
from viz_core.attention import DotProductAttention, masked_softmax
from viz_core.attention.scores import FUNCTIONS, batch_product
from viz_core.lessons.scoring_functions.mask_variants import (
    in_place,
    run_variant,
    weight_gradient,
    weight_gradient_by_formula,
)
from viz_core.lessons.scoring_functions.scaling import dot_products, drop, gaussian_terms, measure_width
from viz_core.lessons.scoring_functions.score_contest import word_scores
from viz_core.trace import attend, attention_weights

chapter = Chapter("scoring-functions")
chapter.question()
chapter.definition()
word_query = sentence_weights(chapter)
chapter.exercise("root", marks=heights(chapter))
chapter.takeaways()
chapter.next()


def mask() -> None:
    """Masked softmax of the reader's scores, its gradient, and six ways of masking."""
    masked = masked_softmax_card(chapter)
    chapter.text("mathematics")
    if masked is not None:
        output_diagram(chapter, masked)
    chapter.heading("debugger")
    runs = debugger(chapter, masked)
    claims(chapter, masked, runs)
    if masked is not None:
        arrays = {"weights": masked.weights, "scores": masked.scores, "gradient": masked.gradient}
        chapter.downloads({name: array.numpy() for name, array in arrays.items()})


def book_exercises() -> None:
    """The book's exercises on scores."""
    chapter.exercise("norms")
    chapter.exercise("matrix")
    chapter.exercise("cost")


def code() -> None:
    """The library functions that drew the figures."""
    chapter.code(
        attention_weights,
        masked_softmax,
        DotProductAttention,
        *(part for function in FUNCTIONS for part in function.code),
        word_scores,
        weight_gradient,
        weight_gradient_by_formula,
        in_place,
        run_variant,
        dot_products,
        measure_width,
        gaussian_terms,
        drop,
        batch_product,
        attend,
    )


chapter.deeper(
    {
        "words": lambda: words(chapter, word_query),
        "scaling": lambda: scaling(chapter),
        "mask": mask,
        "sentences": lambda: sentences(chapter),
        "gaussian": lambda: gaussian(chapter),
        "scores": lambda: scoring_functions(chapter),
        "toy": lambda: toy(chapter),
        "exercises": book_exercises,
        "code": code,
    }
)
