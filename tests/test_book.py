"""Nothing of the sources is missing: every item that was, and every row of the ground truth, has its page."""

from __future__ import annotations

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
GROUND_TRUTH = (
    ROOT.parent / "shared" / "GROUND_TRUTH.md"
)  # where this project was made; elsewhere the list below stands

# What the pages left out of the sources, and where each stands now: chapter, section of its words, words in it.
MISSING = {
    "the motive": ("queries-keys-values", "motive", "224 \\times 224"),
    "four properties of a query": ("queries-keys-values", "motive", "however many pairs"),
    "top-k lookup": ("queries-keys-values", "top", "highest scores"),
    "the diagram of queries, keys and values": ("queries-keys-values", "alt.diagram", "compared with each key"),
    "the gradient never vanishes": ("queries-keys-values", "hard", "never vanishes"),
    "hard attention": ("queries-keys-values", "hard", "Mnih 2014"),
    "the identity of 10 and of 20": ("queries-keys-values", "alt.identities", "10 queries on 10 keys and 20 on 20"),
    "classification with one-hot values": ("attention-pooling", "plane", "one-hot"),
    "a width for each coordinate": ("attention-pooling", "plane", "width for each"),
    "translation invariance": ("attention-pooling", "claim.shifted", "changes no weight"),
    "rotation invariance": ("attention-pooling", "plane.turned", "invariant"),
    "consistency": ("attention-pooling", "consistent", "Mack and Silverman 1982"),
    "no training needed": ("attention-pooling", "mathematics", "No training was needed"),
    "the output as a weighted sum": ("scoring-functions", "look.output", "sum of the **values**"),
    "the batch of three sentences": ("scoring-functions", "sentences", "4, 3 and 2"),
    "random keys beside equal ones": ("scoring-functions", "toy.random", "Random keys"),
    "dropout on weights": ("scoring-functions", "toy", "Srivastava 2014"),
    "additive attention as a network": ("scoring-functions", "claim.concatenation", "small network"),
    "distances and additive scores in cost": ("scoring-functions", "distances", "more additions"),
    "DotProductAttention itself": ("scoring-functions", "toy", "`DotProductAttention`"),
    "the network with one state": ("bahdanau", "alt.plain-model", "only the last"),
    "the network with attention": ("bahdanau", "alt.attention-model", "fed by every encoder state"),
    "the decoder's three-part state": ("bahdanau", "state", "three things"),
    "the shape checks": ("bahdanau", "book.output-shape", "4 sequences of 7 steps"),
    "Graves 2013": ("bahdanau", "state", "Graves (2013)"),
    "Chan 2015": ("bahdanau", "state", "Chan and others (2015)"),
    "the book's printed outputs": ("transformer", "book.translations", "512 sentence pairs"),
    "il est mouillé": ("bahdanau", "book.mouille", "il est mouillé"),
    "its settings": ("bahdanau", "book.settings", "194 and 214"),
    "keys other than queries": ("multi-head", "toy", "4 queries and 6 keys"),
    "a batch of two with lengths 3 and 2": ("multi-head", "toy", "3 and 2 keys are words"),
    "the book's shape": ("multi-head", "book.shape", "100 hidden units and 5 heads"),
    "unequal input widths": ("multi-head", "toy", "widths"),
    "short and long range": ("multi-head", "look.ranges", "Short range and long range"),
}

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
    assert f"({number})" in prediction.question  # readers are told whose question it is
    right = tuple(answer.mark == "x" for answer in prediction.answers)
    assert sum(right) == 1 if exercise.decide is None else right == exercise.decide()


@pytest.mark.parametrize("item", MISSING)
def test_what_was_missing_is_there(item: str) -> None:
    chapter, section, words = MISSING[item]
    text = " ".join(load_words(chapter, "en")(section).split())  # that a page shows it, tests/test_words.py knows
    assert words in text


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


@pytest.mark.skipif(not GROUND_TRUTH.is_file(), reason="the list it was made of is not here")
def test_the_ground_truth_has_no_row_without_a_place() -> None:
    lines = re.findall(r"^(?:- .*|\| (?!where|---).*)$", GROUND_TRUTH.read_text(encoding="utf-8"), flags=re.MULTILINE)
    left = [line for line in lines if not any(line.removeprefix("- ").startswith(row) for row in TRUTH)]
    assert not left


def test_every_printed_value_is_quoted() -> None:
    rows = everything_printed()
    assert {row.kind for row in rows} <= {"printed", "formula"}
    assert not [(row.chapter, row.name) for row in rows if row.kind == "printed" and not row.quote]
