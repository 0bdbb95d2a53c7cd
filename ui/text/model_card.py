"""A shipped model in the visitor's language: its title, licence and classes, and its card."""

from collections.abc import Iterable, Sequence
from typing import Any

from ui.text.markdown import escape
from ui.text.numbers import localised
from ui.text.translations import device_name
from ui.text.words import ENGLISH, Words, load_words
from viz_core.pretrained import ModelCard


def model_title(card: ModelCard) -> str:
    """Return a model's title; that of its card if there is no translation."""
    return _translated("model-title", card.name, card.title)


def named_model(name: str) -> str:
    """Return a shipped model's title with its name; the name alone if it has no title."""
    title = title_of(name)
    return name if title == name else load_words("common")("model-named", title=title, name=name)


def title_of(name: str) -> str:
    """Return the title of the model of this name; the name if it has no title."""
    return _translated("model-title", name, name)


def model_licence(card: ModelCard) -> str:
    """Return a model's licence; that of its card if there is no translation."""
    return licence_of(card.name, card.licence)


def licence_of(name: str, licence: str) -> str:
    """Return the licence of the model of this name; as given if there is no translation."""
    shared = "tatoeba" if licence == load_words("common", ENGLISH)("licence.tatoeba") else name
    return _translated("licence", shared, licence)


def class_label(name: str) -> str:
    """Return a class of a picture, or a sample picture; what the model calls it if there is no translation."""
    return _translated("class", name, name)


def trained_for(seconds: int) -> str:
    """Return how long a model was trained: "71 min"."""
    return load_words("common")("trained-minutes", count=f"{seconds // 60:,}")


def _translated(section: str, name: str, default: str) -> str:
    common = load_words("common")
    return common(f"{section}.{name}") if common.has(f"{section}.{name}") else default


def model_card_text(card: ModelCard) -> str:
    """Return a shipped model's card as Markdown: what it is, its scores, data, training and limits."""
    words, record, model = load_words("model-card"), card.training, card.config["model"]
    if card.task == "translation":
        lowest = min(point["validation_loss"] for point in record["curve"])
        end = {"updates": f"{record['updates']:,}", "loss": f"{lowest:.3f}"}
    else:
        end = {"accuracy": f"{record['curve'][-1]['validation_accuracy']:.1f}"}
    parts = [
        words(f"about.{model['architecture']}", **model),
        words("parameters", count=f"{card.config['parameters']:,}"),
        *(_translator(words, card) if card.task == "translation" else _classifier(words, card)),
        words(f"data.{card.task}" if card.task == "translation" else f"data.{card.name}", licence=model_licence(card)),
        words(
            f"training.{card.task}",
            epochs=f"{record['curve'][-1]['epoch']:.1f}",
            time=trained_for(record["seconds"]),
            device=device_name(record["device"]),
            **end,
        ),
    ]
    if words.has(f"note.{card.name}") and "alignments" in record:
        parts.append(words(f"note.{card.name}", pairs=record["alignments"]["pairs"]))
    return "\n\n".join((*parts, words(f"limits.{card.task}")))


def _translator(words: Words, card: ModelCard) -> Iterable[str]:
    """Scores of a translator, by length too; its translations of the book's sentences, alignment and copying."""
    record, bins = card.training, card.training["bleu_by_length"]
    yield words(
        "scores",
        sentences=f"{sum(each['sentences'] for each in bins):,}",
        **{name.removeprefix("bleu_"): f"{score:.1f}" for name, score in card.scores.items()},
    )
    rows = [(f"{each['from']}–{each['to']}", f"{each['sentences']:,}", f"{each['bleu']:.1f}") for each in bins]
    yield _table(words, "lengths", rows)
    yield _table(words, "sentences", [tuple(map(escape, pair)) for pair in record["book_sentences"].items()])
    if alignments := record.get("alignments"):
        rates = [rate for kind in ("written", "read") for layer in alignments[kind] for rate in layer]
        values = {"best": f"{min(rates):.1%}", "diagonal": f"{alignments['diagonal']:.1%}"}
        yield words("alignment", pairs=alignments["pairs"], **values)
    if copying := record.get("copying"):
        yield words("copying", **{kind: f"{copying[kind]['right']:.1f}%" for kind in ("numbers", "names")})


def _classifier(words: Words, card: ModelCard) -> Iterable[str]:
    """Accuracy of a classifier, by class too; its calibration, and how pictures unlike its data are told."""
    record, confusion = card.training, card.training["confusion"]
    yield words("accuracy", accuracy=f"{card.scores['accuracy']:.2f}%", count=f"{sum(map(sum, confusion)):,}")
    rows = [
        (class_label(label), f"{sum(row):,}", f"{row[i] / sum(row):.1%}")
        for i, (label, row) in enumerate(zip(card.config["labels"], confusion, strict=True))
    ]
    yield _table(words, "classes", rows)
    if calibration := record.get("calibration"):
        yield words("calibration", error=f"{100 * calibration['error']:.1f}")
    if familiarity := record.get("familiarity"):
        yield words(
            "familiarity",
            known=f"{familiarity['known']:.0%}",
            threshold=f"{familiarity['threshold']:.1f}",
            strange=[f"{share:.0%}" for share in familiarity["strange"].values()],
        )


def _table(words: Words, name: str, rows: Iterable[Sequence[Any]]) -> str:
    """Return a table whose header is a section of the words, with the numbers of its cells in their language."""
    lines = ("| " + " | ".join(localised(cell, words.language) for cell in row) + " |" for row in rows)
    return "\n".join((words(f"table.{name}"), *lines))
