"""Nothing of the sources is missing: every item that was, and every row of the ground truth, has its page."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.book_exercises import EXERCISES
from ui.chapter.chapter import Chapter
from ui.chapter.contents import folder
from ui.chapter.source_cards import Printed, as_printed, everything_printed, find_printed
from ui.text.words import load_words
from ui.widgets.predictions import read_prediction

ROOT = Path(__file__).resolve().parents[1]


# Each row of the ground truth: words of it -> the cards that show it, "chapter: name", or where its number stands.
TRUTH: dict[str, tuple[str, ...]] = {
    "Sinusoidal table, d=32": tuple(f"sinusoidal-encoding: {n}" for n in ("table", "norm", "wavelengths", "longest")),
    "Similarity p_0 . p_k": ("sinusoidal-encoding: similarity",),
    "Projection of one pair": ("relative-projection: pair", "sinusoidal-encoding: codes"),
    "Shapes: bmm": (
        "scoring-functions: product",
        "scoring-functions: dot-shape",
        "multi-head: shape",
        "transformer: block",
        "transformer: encoder",
        "vision-transformer: patches",
    ),
    "LayerNorm against BatchNorm": ("transformer: norms",),
    "Masked softmax of [0,1,x,x]": ("scoring-functions: masked-softmax",),
    "Nadaraya-Watson": ("attention-pooling: curve",),
    "Database of names": ("queries-keys-values: exact", "queries-keys-values: approximate"),
    "Translation, 512 training pairs": ("bahdanau: mouille", "transformer: translations"),
    "Bahdanau: 2 GRU layers": ("bahdanau: settings", "vision-transformer: settings"),
    "2n-1 offsets for n tokens": ("position-embeddings: offsets", "position-embeddings: grid"),
    "Vaswani 2017, Table 1": ("architectures: table", "multi-head: heads"),
    "Shaw 2018, Table 2": ("position-embeddings: clipping",),
    "Dosovitskiy 2021, Table 8": ("vision-transformer: positions",),
    "Press 2022 (ALiBi)": ("position-embeddings: slopes", "position-embeddings: slopes-16"),
    "Raffel 2020 (T5)": ("position-embeddings: buckets",),
    "Su 2021 (rotary)": ("position-embeddings: rotary",),
    "Dong 2021": ("position-embeddings: rank",),
    "Voita 2019": ("transformer: voita",),
    "Michel 2019": ("transformer: michel",),
    "Kobayashi 2020": ("transformer: kobayashi",),
    "Chen 2020, Shift-Att": ("bahdanau: chen",),
    "Abnar & Zuidema 2020": ("vision-transformer: abnar",),
    "Xiao 2023": ("model-lab: window", "model-lab: sinks"),
    "Olsson 2022": ("model-lab: induction",),
    "Clark 2019": ("transformer: clark",),
    "Press 2022, Table 2": ("position-embeddings: longer",),
    "Kazemnejad 2023": ("position-embeddings: small-tasks",),
    "Nanda 2023": ("learning: grokking",),
    "Darcet 2023": ("vision-transformer: darcet",),
    "Whisper large-v2": ("model-lab: aligning",),
    "gpt-oss": ("model-lab: sink-logit",),
    "| the book, kernels": ("attention-pooling: kernel",),
    "| the book, masked softmax": ("scoring-functions: masked-softmax",),
    "| the book, `PositionalEncoding`": ("sinusoidal-encoding: table",),
    "| the book, decoder block": ("transformer: causal",),
    "| the book, attention modules": ("transformer: kept",),
    "| AI Summer, relative 1-D": ("position-embeddings: shared-heads",),
    "| AI Summer, relative 2-D": ("position-embeddings: grid",),
    "| vit-explain, rollout": ("vision-transformer: rollout",),
    "| the book and a lecture on it": ("architectures: paths",),
}


@pytest.mark.parametrize("number", EXERCISES)
def test_a_book_exercise_is_a_prediction_decided_by_an_experiment(number: str) -> None:
    exercise = EXERCISES[number]
    words = load_words(exercise.chapter, "en")
    assert exercise.name in _strings(exercise.chapter)  # the page puts the question,
    assert not exercise.shown or words.has(exercise.shown)  # and shows the result
    prediction = read_prediction(words(f"exercise.{exercise.name}"))
    assert prediction.question.startswith(f"[{number.replace(', ', '.')}] ")  # readers are told whose question it is
    right = tuple(answer.mark == "x" for answer in prediction.answers)
    assert sum(right) == 1 if exercise.decide is None else right == exercise.decide()


def _card(place: str) -> Printed:
    chapter, name = place.split(": ")
    return find_printed(chapter, name)


@pytest.mark.parametrize("row", TRUTH)
def test_every_row_of_the_ground_truth_has_a_card_with_what_was_printed(row: str) -> None:
    for place in TRUTH[row]:
        card = _card(place)
        words = load_words(card.chapter, "en")
        assert words.has(f"book.{card.name}")
        assert card.printed
        if row.startswith("| "):  # an erratum says what is wrong
            assert words.has(f"erratum.{card.name}"), place


@pytest.mark.parametrize("chapter", sorted({card.chapter for card in everything_printed()}))
def test_every_card_of_the_list_stands_on_its_page(chapter: str) -> None:
    assert {card.name for card in everything_printed() if card.chapter == chapter} <= _strings(chapter)


def _strings(chapter: str) -> set[str]:
    """Strings in the code of a chapter."""
    code = (path.read_text(encoding="utf-8") for path in (ROOT / "pages" / folder(chapter)).glob("*.py"))
    return {found for text in code for found in re.findall(r'"([\w.-]+)"', text)}


class Sheet(Chapter):
    """A chapter that draws nothing and keeps what it is handed."""

    def __init__(self) -> None:
        self.cards: Mapping[str, Any] = {}

    def sources(self, cards: Mapping[str, Any]) -> None:
        self.cards = cards


@pytest.mark.parametrize(
    ("chapter", "wrong"),
    [
        ("sinusoidal-encoding", {"longest": "60,611"}),
        ("relative-projection", {}),
        ("linear-attention", {}),
        ("heads", {}),
        ("position-embeddings", {"shared-heads": "2"}),
    ],
)
def test_ours_agree_to_the_digits_printed_but_for_errata(chapter: str, wrong: dict[str, str]) -> None:
    sheet = Sheet()
    name = "sections" if chapter == "position-embeddings" else "parts"
    import_module(f"pages.{folder(chapter)}.{name}").sources(sheet)
    computed = {name: ours for name, ours in sheet.cards.items() if ours is not None}
    assert computed
    for name, ours in computed.items():
        printed = find_printed(chapter, name).printed
        assert as_printed(printed, ours) == wrong.get(name, printed)
        assert name not in wrong or load_words(chapter, "en").has(f"erratum.{name}")


def test_every_printed_value_is_quoted() -> None:
    rows = everything_printed()
    assert {row.kind for row in rows} <= {"printed", "formula"}
    assert not [(row.chapter, row.name) for row in rows if row.kind == "printed" and not row.quote]
