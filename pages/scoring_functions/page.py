"""Scoring functions: masked softmax, mask debugger, why 1/sqrt(d), the Gaussian taken apart, four scores, shapes."""

from pages.scoring_functions import looks
from pages.scoring_functions import masking as parts
from ui.chapter import Chapter
from viz_core.attention import AdditiveAttention, masked_softmax
from viz_core.attention.scoring import batch_product, dot_scores, general_scores, scaled_dot_scores
from viz_core.lessons.scoring_functions.gaussian_terms import gaussian_terms
from viz_core.lessons.scoring_functions.mask_recipes import in_place, run_recipe
from viz_core.lessons.scoring_functions.scaling import dot_products, measure_width
from viz_core.lessons.scoring_functions.softmax_gradient import weight_gradient, weight_gradient_by_formula

chapter = Chapter("scoring-functions")
chapter.question()
masked = parts.masked_softmax_card(chapter)

chapter.heading("debugger")
runs = parts.debugger(chapter, masked)

chapter.text("mathematics")
parts.claims(chapter, masked, runs)

chapter.tabs(
    scaling=lambda: looks.scaling(chapter),
    gaussian=lambda: looks.gaussian(chapter),
    scores=lambda: looks.four_scores(chapter),
    shapes=lambda: looks.shapes(chapter),
)

chapter.exercise("length-zero")
chapter.code(
    masked_softmax,
    weight_gradient,
    weight_gradient_by_formula,
    in_place,
    run_recipe,
    dot_products,
    measure_width,
    gaussian_terms,
    dot_scores,
    scaled_dot_scores,
    general_scores,
    AdditiveAttention,
    batch_product,
)
if masked is not None:
    chapter.downloads(
        parts.weights_picture(chapter, masked),
        weights=masked.weights.numpy(),
        scores=masked.scores.numpy(),
        gradient=masked.gradient.numpy(),
    )
