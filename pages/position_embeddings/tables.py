"""Schemes that are a table by position: sinusoids, learned embeddings, one vector for each key."""

from __future__ import annotations

from torch import Tensor

from pages.position_embeddings.experiment_figures import similarity_figure
from pages.position_embeddings.own_figures import own_figures
from pages.position_embeddings.tokens import ROUNDING, WHERE_TRAINED, TokenInputs, link_to
from ui.chapter.chapter import Chapter
from viz_core.lessons.position_embeddings.learn_table import table_offset_share
from viz_core.lessons.position_embeddings.scheme_proofs import row_spread
from viz_core.positional.learned import LEARNED
from viz_core.positional.register import BY_NAME
from viz_core.positional.sinusoidal import SINUSOIDAL


@own_figures("sinusoidal")
def sinusoidal(chapter: Chapter, inputs: TokenInputs) -> None:
    _similarity(chapter, "sinusoidal", inputs.layer.input_table(SINUSOIDAL))
    for name in ("sinusoidal-encoding", "relative-projection"):
        link_to(name)


@own_figures("learned")
def learned(chapter: Chapter, inputs: TokenInputs) -> None:
    """The table that a shipped picture model has learned, or a random one for other tokens."""
    chapter.text(f"table-{inputs.trained}", model=inputs.model)
    link_to(WHERE_TRAINED[inputs.trained])
    name = "fresh" if inputs.layer.table is None else "shipped"
    _similarity(chapter, name, inputs.layer.input_table(LEARNED))


def _similarity(chapter: Chapter, name: str, table: Tensor) -> None:
    share = table_offset_share(table)
    figure = similarity_figure({name: table.numpy()}, chapter.words.group("figure"))
    chapter.figure("similarity", figure, share=f"{share:.0%}", n=len(table))


@own_figures("absolute")
def absolute(chapter: Chapter, inputs: TokenInputs) -> None:
    """Equal rows where the same word is at every position."""
    with chapter.claims():
        scheme = "relative" if chapter.break_and_explain("by-offset") else "absolute"
        bias = inputs.layer.one_word().position_scores(BY_NAME[scheme])
        chapter.claim("same-rows", row_spread(bias), ROUNDING)
