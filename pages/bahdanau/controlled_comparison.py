"""What attention adds when all else is equal: two GRUs, the same updates, several seeds."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.bahdanau.figures import balanced_figure, curves_figure
from pages.bahdanau.recorded_comparison import Scores, alike
from ui.chapter.chapter import Chapter

DONE = 0.02  # part of its loss that a run which has learned all it can still loses in an epoch, at most


def all_else_alike(chapter: Chapter) -> None:
    """How both were trained, scores by length from every seed, what attention adds, and whether training was done."""
    found, names = alike(), chapter.words.group("figure")
    recipe = found.recipe
    titles = {"plain": chapter.words("model.seq2seq-en-fr"), "attention": chapter.words("model.bahdanau-en-fr")}
    chapter.text(
        "alike",
        width=recipe["num_hiddens"],
        seeds=len(found.balanced.plain),
        vocabulary=f"{recipe['vocab_size']:,}",
        updates=f"{found.updates:,}",
        epochs=recipe["epochs"],
        each=next(iter(found.bins.values())).sentences,
        **{f"{name}_parameters": f"{found.parameters[name]:,}" for name in titles},
    )
    models = {
        title: [(*ends, *each.spread(name)) for ends, each in found.bins.items()] for name, title in titles.items()
    }
    values: dict[str, Any] = {"value": f"{found.balanced.difference.value:.1f}", "all": found.balanced.sentences}
    chapter.figure("alike", lambda: balanced_figure(models, names), height=380, **values)
    rows = [chapter.words("alike.head", **titles)]
    rows += [_row(chapter, f"{low}–{high}", each) for (low, high), each in found.bins.items()]
    rows.append(_row(chapter, chapter.words("alike.all", count=found.balanced.sentences), found.balanced))
    st.markdown("\n".join(rows))
    chapter.finding("alike", all(each.difference.low > 0 for each in found.bins.values()), **_added(found.balanced))
    times = [f"{scores.times:.1f}" for scores in found.bins.values()]
    chapter.finding("alike-grows", found.grows, times=times)
    curves = {title: found.curve(name) for name, title in titles.items()}
    losses: dict[str, Any] = {name: f"{found.curve(name)[-1]['validation_loss']:.2f}" for name in titles}
    chapter.figure("alike-curves", lambda: curves_figure(curves, names["epoch"], names["loss"]), height=320, **losses)
    chapter.finding("alike-done", found.last_gain <= DONE, gain=f"{found.last_gain:.1%}")


def _row(chapter: Chapter, length: str, scores: Scores) -> str:
    values = {name: f"{scores.spread(name)[0]:.1f}" for name in ("plain", "attention")}
    return chapter.words("alike.row", length=length, **values, **_added(scores))


def _added(scores: Scores) -> dict[str, str]:
    return {name: f"{number:.1f}" for name, number in scores.difference._asdict().items()}
