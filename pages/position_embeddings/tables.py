"""Schemes that are a table by position: sinusoids, learned embeddings, one vector for each key."""

from __future__ import annotations

import torch

from pages.position_embeddings.experiment_figures import similarity_figure
from pages.position_embeddings.tokens import ROUNDING, WHERE_TRAINED, Asked, link_to
from ui.chapter.chapter import Chapter
from viz_core.lessons.position_embeddings.learn_table import offset_share
from viz_core.lessons.position_embeddings.scheme_proofs import (
    row_spread,
)
from viz_core.lessons.position_embeddings.schemes import BY_NAME, learned_table
from viz_core.positional import (
    sinusoidal_table,
)


def sinusoidal(chapter: Chapter, asked: Asked) -> None:
    n, d = asked.setting.X.shape
    _similarity(chapter, "sinusoidal", sinusoidal_table(n, d))
    for name in ("sinusoidal-encoding", "relative-projection"):
        link_to(name)


def learned(chapter: Chapter, asked: Asked) -> None:
    """The table a shipped picture model has learned where there is one for the tokens, else a drawn one."""
    chapter.text(f"table-{asked.trained}", model=asked.model)
    link_to(WHERE_TRAINED[asked.trained])
    name = "fresh" if asked.setting.table is None else "shipped"
    _similarity(chapter, name, learned_table(asked.setting))


def _similarity(chapter: Chapter, name: str, table: torch.Tensor) -> None:
    share = offset_share(table @ table.T) if len(table) > 1 else 1.0
    figure = similarity_figure({name: table.numpy()}, chapter.words.group("figure"))
    chapter.figure("similarity", figure, share=f"{share:.0%}", n=len(table))


def absolute(chapter: Chapter, asked: Asked) -> None:
    """With the same word everywhere all queries are the same, and so are all rows."""
    with chapter.claims():
        scheme = "relative" if chapter.break_it("by-offset") else "absolute"
        bias = BY_NAME[scheme].position_scores(asked.setting.one_word())
        chapter.claim("same-rows", row_spread(bias), ROUNDING)
