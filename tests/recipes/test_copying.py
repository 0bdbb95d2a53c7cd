"""Sentences with numbers and names that nobody trained on, and what counts as copied."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from recipes import copying
from recipes.__main__ import main
from recipes.copying import Case, copying_cases, copying_section, measure_copying, reserved
from recipes.pair_augmentation import Variations
from recipes.sentence_pairs import Pair, Split
from viz_core.pretrained import Translator
from viz_core.pretrained.decoding import beam_search

TRAIN = [Pair("I am 30.", "J'ai 30 ans."), Pair("Tom is here.", "Tom est ici."), Pair("Go.", "Va !")]
TEST = [Pair("She has 12 cats.", "Elle a 12 chats."), Pair("Tom is away.", "Tom est parti."), Pair("Hi.", "Salut !")]
SPLIT = Split(TRAIN, [], TEST)


def test_cases_hold_what_no_training_pair_does() -> None:
    cases = copying_cases(SPLIT, per_kind=20)
    assert [case.kind for case in cases] == ["numbers"] * 20 + ["names"] * 20
    assert cases == copying_cases(SPLIT, per_kind=20)
    trained = set(re.findall(r"\w+", " ".join(text for pair in TRAIN for text in pair)))
    assert not trained & reserved(cases)
    assert len(reserved(cases)) == 40, "each is another"
    for case in cases:
        (copied,) = case.copied
        assert copied in case.english
        assert copied in case.reference
        assert case.is_right(case.reference)
    varied = Variations.of([*TRAIN, *TEST], reserved(cases)).epoch(0)
    assert not reserved(cases) & set(re.findall(r"\w+", " ".join(pair.english for pair in varied)))
    assert copying_cases(Split(TRAIN, [], [Pair("Hi.", "Salut !")])) == ()


@pytest.mark.parametrize(
    ("french", "right"),
    [
        ("Elle a 7 432 chats à 5 h.", True),
        ("Elle a 7432 chats à 5 h.", True),
        ("Elle a 7 423 chats à 5 h.", False),
        ("Elle a 7 432 chats.", False),
        ("Elle a 7 432 chats à 5 h 1.", False),
    ],
)
def test_numbers_are_right_by_their_digits(french: str, right: bool) -> None:
    assert Case("numbers", "…", "Elle a 7 432 chats à 5 h.", ("7", "432")).is_right(french) is right


@pytest.mark.parametrize(
    ("french", "right"),
    [("d'Anka et Zorb.", True), ("Zorb, Anka", True), ("Zorba et Anka", False), ("zorb Anka", False)],
)
def test_names_are_right_as_whole_words(french: str, right: bool) -> None:
    assert Case("names", "…", "…", ("Zorb", "Anka")).is_right(french) is right


def test_percentages_are_of_the_sentences_of_a_kind(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        Case("numbers", "a", "Il a 12 ans.", ("12",)),
        Case("numbers", "b", "Il a 34 ans.", ("34",)),
        Case("names", "c", "Zorb est ici.", ("Zorb",)),
    ]
    greedy = {"a": "Il a 12 ans.", "b": "Il a 43 ans.", "c": "Zorb est ici."}
    beams = {**greedy, "b": "Il a 34 ans."}
    monkeypatch.setattr(
        copying, "translate_all", lambda *given: [(beams if given[3] is beam_search else greedy)[e] for e in given[2]]
    )
    measured = measure_copying(translator, cases)
    assert (measured["numbers"]["sentences"], measured["numbers"]["right"]) == (2, 50.0)
    assert measured["numbers"]["right_beam_4"] == 100.0
    assert (measured["names"]["sentences"], measured["names"]["right"]) == (1, 100.0)
    assert measured["numbers"]["examples"] == [["a", "Il a 12 ans.", True], ["b", "Il a 43 ans.", False]]
    assert 50 < measured["bleu"] < 100
    section = copying_section(measured)
    assert "| all digits, in their order | 2 | 50.0% | 100.0% |\n| all names | 1 | 100.0% | 100.0% |" in section
    assert "| b | Il a 43 ans. | no |" in section


def test_the_command_writes_beside_the_checkpoint(
    checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = next(path.name for path in checkpoints.iterdir())
    shutil.copytree(checkpoints / name, tmp_path / name)
    monkeypatch.setattr(copying, "split_pairs", lambda _: SPLIT)
    monkeypatch.setattr(copying, "load_pairs", lambda _: [])
    monkeypatch.setattr(copying, "copying_cases", lambda split: copying_cases(split, per_kind=3))
    arguments = ["copying", name, "--data", "nowhere", "--checkpoints", str(tmp_path)]
    assert main(arguments) == 0
    training = json.loads((tmp_path / name / "training.json").read_text(encoding="utf-8"))
    assert training["copying"]["numbers"]["sentences"] == training["copying"]["names"]["sentences"] == 3
    assert (tmp_path / name / "card.md").read_text(encoding="utf-8").count("## Copying\n") == 1
    assert main(["copying", "nobody", *arguments[2:]]) == 1
    assert "cannot measure what nobody copies" in capsys.readouterr().err
