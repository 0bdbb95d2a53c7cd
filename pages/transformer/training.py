"""How the model was trained, and where its parameters are."""

from __future__ import annotations

from pages.transformer import figures
from ui.chapter.chapter import Chapter
from ui.text.model_card import trained_for
from ui.text.terms import device_name
from viz_core.models import anatomy
from viz_core.pretrained import Translator


def training(chapter: Chapter, model: Translator) -> None:
    """Curves, scores and the card, all as the training script wrote them."""
    record, names = model.card.training, chapter.words.group("figure")
    scores, curve, bins = model.card.scores, record["curve"], record["bleu_by_length"]
    chapter.text(
        "training",
        time=trained_for(record["seconds"]),
        device=device_name(record["device"]),
        sentences=f"{sum(b['sentences'] for b in bins):,}",
        greedy=f"{scores['bleu_greedy']:.1f}",
        beam=f"{scores['bleu_beam_4']:.1f}",
    )
    rows = "\n".join(f"| {english} | {french} |" for english, french in record["book_strings"].items())
    chapter.text("lower", lower=f"{scores['bleu_lower_case']:.1f}", rows=rows)
    chapter.source_card("translations")
    last = curve[-1]
    chapter.figure(
        "curve",
        lambda: figures.curve_figure(curve, names),
        train=f"{last['train_loss']:.2f}",
        validation=f"{last['validation_loss']:.2f}",
        bleu=f"{last['validation_bleu']:.1f}",
        epochs=f"{last['epoch']:.0f}",
    )
    summary = {f"{b['from']}–{b['to']}": f"{b['bleu']:.0f}" for b in bins}
    chapter.figure("length", lambda: figures.length_figure(bins, names), summary=summary)
    chapter.model_card("card", chapter.words("card"), model.card)


def parameters(chapter: Chapter, model: Translator) -> None:
    """How many parameters each part has."""
    counts, names = anatomy.parameters_by_part(model.model), chapter.words.group("figure")
    summary = [f"{names[part]} {count:,}" for part, count in counts.items()]
    chapter.figure("parameters", lambda: figures.parameter_figure(counts, names), summary=summary)
