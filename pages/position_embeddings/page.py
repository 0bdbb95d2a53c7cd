"""Every position scheme on the same tokens: side by side, one at a time, and what each costs."""

from functools import partial

from pages.position_embeddings.across import across_models
from pages.position_embeddings.costs import costs
from pages.position_embeddings.experiments import experiments
from pages.position_embeddings.one_scheme import one_scheme
from pages.position_embeddings.predictions import sketch_the_penalty
from pages.position_embeddings.shuffle import shuffle
from pages.position_embeddings.side_by_side import side_by_side
from pages.position_embeddings.sources import sources
from pages.position_embeddings.tokens import ask_tokens
from ui.chapter.chapter import Chapter
from viz_core.lessons.position_embeddings.order import order_residual
from viz_core.lessons.position_embeddings.shared_layer import SharedLayer
from viz_core.positional.register import SCHEMES

chapter = Chapter("position-embeddings")
chapter.question()
inputs = chapter.require(ask_tokens(chapter))

chapter.exercise("echo")
chapter.tabs(
    schemes=lambda: side_by_side(chapter, inputs),
    closer=lambda: one_scheme(chapter, inputs),
    costs=lambda: costs(chapter, inputs),
    shuffle=lambda: shuffle(chapter, inputs.as_typed),
    across=lambda: across_models(chapter),
    experiments=lambda: experiments(chapter, inputs.as_typed),
)

sketch_the_penalty(chapter)
sources(chapter)
chapter.code(*(part for scheme in SCHEMES for part in scheme.code), SharedLayer, order_residual)
chapter.downloads(
    {scheme.name.replace("-", "_"): partial(inputs.layer.position_scores, scheme) for scheme in SCHEMES[1:]}
)
chapter.next()
