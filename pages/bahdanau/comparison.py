"""Three models side by side: on the reader's sentence, by length of the source, and while they were trained."""

from __future__ import annotations

import streamlit as st

from pages.bahdanau import figures
from pages.bahdanau.models import ATTENTION, PLAIN, TRANSFORMER, cards_there
from pages.bahdanau.training_compared import Trained
from ui.blocks.translation import TranslationInputs
from ui.chapter.chapter import Chapter
from ui.compute.models import translation, translator
from ui.text.errors import explain
from ui.text.markdown import escape
from ui.text.model_names import model_title
from viz_core.pretrained import CheckpointError, samples

CHANCE = 0.05  # half the 95% interval of a difference of alignment error rates over 100 resampled sentences


def side_by_side(chapter: Chapter, request: TranslationInputs) -> None:
    """The same sentence by each model that ships, and each model's scores on the test sentences."""
    rows = [chapter.words("table.head")]
    for card in cards_there().values():
        try:
            result = translation(card.name, request.text, request.beam)
        except CheckpointError as error:
            rows.append(chapter.words("table.missing", model=escape(model_title(card)), reason=explain(error)))
            continue
        rows.append(
            chapter.words(
                "table.row",
                model=chapter.words(f"model.{card.name}"),
                text=escape(result.text),
                greedy=f"{card.scores['bleu_greedy']:.1f}",
                beam=f"{card.scores['bleu_beam_4']:.1f}",
                parameters=f"{card.config['parameters']:,}",
            )
        )
    st.markdown("\n".join(rows))


def how_far_trained(chapter: Chapter) -> None:
    """How long each model was trained, and which recurrent model that favours."""
    there = {name: Trained.read(card.training) for name, card in cards_there().items()}
    rows = [chapter.words("trained.head")]
    rows += [
        chapter.words(
            "trained.row",
            model=chapter.words(f"model.{name}"),
            epochs=f"{each.epochs:.2f}",
            updates=f"{each.updates:,}",
            batch=f"{each.batch_tokens:,}",
            optimiser=chapter.words("trained.muon" if each.muon else "trained.adam"),
        )
        for name, each in there.items()
    ]
    st.markdown("\n".join(rows))
    if not {ATTENTION, PLAIN} <= there.keys():
        return
    attention, plain = there[ATTENTION], there[PLAIN]
    chapter.finding("unequal", attention != plain, attention=f"{attention.epochs:.2f}", plain=f"{plain.epochs:.2f}")
    if transformer := there.get(TRANSFORMER):
        same = (transformer.batch_tokens, transformer.muon) == (attention.batch_tokens, attention.muon)
        chapter.finding("same-recipe", same, epochs=f"{transformer.epochs:.2f}")


def how_well_aligned(chapter: Chapter) -> None:
    """How well the map agrees with hand-aligned sentences."""
    measured = translator(ATTENTION).card.training.get("alignments")
    if measured:
        (written,), (read,) = measured["written"][0], measured["read"][0]
        values = {"pairs": measured["pairs"]}
        rates = {"written": written, "read": read, "diagonal": measured["diagonal"]}
        values |= {name: f"{rate:.1%}" for name, rate in rates.items()}
        chapter.finding("aligned", abs(written - measured["diagonal"]) <= CHANCE, **values)


def as_many_of_each(chapter: Chapter) -> None:
    """BLEU with intervals on as many test sentences of every length, and what attention adds on the same ones."""
    measured = samples.by_length()
    there = list(cards_there())
    models = {
        chapter.words(f"model.{name}"): [(each["from"], each["to"], *each["bleu"][name]) for each in measured["bins"]]
        for name in there
    }
    names = chapter.words.group("figure")
    over_all = measured["balanced"]
    summary = {
        chapter.words(f"model.{name}"): f"{value:.1f} ({low:.1f}–{high:.1f})"
        for name, (value, low, high) in over_all["bleu"].items()
        if name in there
    }
    values = {"each": measured["bins"][0]["sentences"], "all": over_all["sentences"], "summary": summary}
    chapter.text("balanced", **values)
    chapter.figure("balanced", lambda: figures.balanced_figure(models, names), height=380, **values)
    value, low, high = over_all["difference"]
    sure = all(each["difference"][1] > 0 for each in measured["bins"])
    chapter.finding("balanced", sure, value=f"{value:.1f}", low=f"{low:.1f}", high=f"{high:.1f}")


def how_trained(chapter: Chapter) -> None:
    """Curves and cards of the two recurrent models."""
    cards = cards_there()
    curves = {chapter.words(f"model.{name}"): card.training["curve"] for name, card in cards.items()}
    summary = {name: f"{curve[-1]['validation_loss']:.2f}" for name, curve in curves.items()}
    names = chapter.words.group("figure")
    chapter.figure("curves", lambda: figures.curves_figure(curves, names["epoch"], names["loss"]), summary=summary)
    for name in (ATTENTION, PLAIN):
        if name in cards:
            chapter.model_card(f"card-{name}", model_title(cards[name]), cards[name])
