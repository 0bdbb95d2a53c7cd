"""Sentences with numbers and names that nobody trained on, and what counts as copied."""

import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from recipes import copying
from recipes.copying import Case, copying_cases, copying_section, measure_copying, reserved
from recipes.pair_augmentation import Variations, names_of, number_words_of, numbers_of, vary
from recipes.sentence_pairs import Pair, Split
from viz_core.pretrained import Translator
from viz_core.pretrained.decoding import beam_search

TRAIN = [Pair("I am 30.", "J'ai 30 ans."), Pair("Tom is here.", "Tom est ici."), Pair("Go.", "Va !")]
TEST = [Pair("She has 12 cats.", "Elle a 12 chats."), Pair("Tom is away.", "Tom est parti."), Pair("Hi.", "Salut !")]
SPLIT = Split(TRAIN, [], TEST)
CATS = Case("numbers", "…", "Elle a 7 432 chats à 5 h.", ("7", "432"))
TWO = Case("names", "…", "…", ("Zorb", "Anka"))


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


def test_numbers_are_right_by_their_digits_and_names_as_whole_words() -> None:
    for case, french, right in (
        (CATS, "Elle a 7432 chats à 5 h.", True),
        (CATS, "Elle a 7 423 chats à 5 h.", False),
        (CATS, "Elle a 7 432 chats.", False),
        (CATS, "Elle a 7 432 chats à 5 h 1.", False),
        (TWO, "d'Anka et Zorb.", True),
        (TWO, "Zorba et Anka", False),
        (TWO, "zorb Anka", False),
    ):
        assert case.is_right(french) is right, french


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
    assert "| all digits, in their order | 2 | 50.0% | 100.0% |" in copying_section(measured)


ORDINARY = frozenset({"excuse", "mars", "the", "new"})
NAMES = partial(names_of, ordinary=ORDINARY)


def varied(english: str, french: str, seed: int = 0) -> tuple[Pair, tuple[str, ...], tuple[str, ...]]:
    found = vary(Pair(english, french), ORDINARY, random.Random(seed))
    assert found is not None
    return found


FOUND: list[tuple[Callable[[Pair], Any], str, str, Any]] = [
    (numbers_of, "I am 30.", "J'ai 30 ans.", {"30": "plain"}),
    (numbers_of, "At 2:30.", "À 2 h 30.", {"2": "hour", "30": "minute"}),
    (numbers_of, "It costs 3,500 yen.", "Ça coûte 3 500 yens.", {"3": "leading", "500": "joined"}),
    (numbers_of, "At 4:00 p.m.", "À 16 h 00.", {}),  # no copy
    (numbers_of, "I have 5 cats.", "J'ai cinq chats.", {}),
    (numbers_of, "On the 21st.", "Le 21.", {}),  # 22nd would be another word
    (numbers_of, "Add 12 to 12 and 40.", "Ajoute 12 à 12 et 40.", {"12": "plain", "40": "plain"}),
    (number_words_of, "I have two cats.", "J'ai deux chats.", {"two": "deux"}),
    (number_words_of, "It is two and two.", "Ça fait deux et deux.", {}),
    (number_words_of, "twenty-two cats", "vingt-deux chats", {}),
    (number_words_of, "two hundred cats", "deux cents chats", {}),
    (number_words_of, "I have two cats and 3 dogs.", "J'ai deux chats et 3 chiens.", {}),
    (NAMES, "Tom loves Mary.", "Tom aime Mary.", ["Tom", "Mary"]),
    (NAMES, "Alice's car", "la voiture d'Alice", ["Alice"]),
    (NAMES, "Excuse Tom.", "Excuse Tom.", ["Tom"]),
    (NAMES, "He is in Mexico.", "Il est au Mexico.", []),  # au stays as it is for some names alone
    (NAMES, "Harry is here.", "Harry est ici.", []),  # d'Hector, de Harry
    (NAMES, "Mary is here.", "Marie est ici.", []),
]


def test_which_digits_words_for_numbers_and_names_may_become_others() -> None:
    for find, english, french, expected in FOUND:
        assert find(Pair(english, french)) == expected, english


def test_signs_around_numbers_stay_and_what_is_put_in_is_not_replaced_again() -> None:
    for seed in range(20):
        pair, numbers, names = varied("Tom paid 3,500 yen at 2:30.", "Tom a payé 3 500 yens à 2 h 30.", seed)
        english = re.fullmatch(r"(\S+) paid (\d),(\d{3}) yen at (\d+):(\d\d)\.", pair.english)
        french = re.fullmatch(r"(\S+) a payé (\d) (\d{3}) yens à (\d+) h (\d\d)\.", pair.french)
        assert english is not None
        assert french is not None
        assert english.groups() == french.groups() == (*names, *numbers)
        assert int(english[5]) < 60
        assert 2 <= int(english[4]) <= 12
        assert not {"3", "500", "2", "30"} & set(numbers)
    pair, (number,), (name,) = varied("Alice has two cats.", "Les deux chats d'Alice.")
    assert pair == Pair(f"{name} has {number} cats.", f"Les {number} chats d'{name}.")
    assert name[0] in "AEIOU"
    assert vary(Pair("Go.", "Va !"), ORDINARY, random.Random(0)) is None


def test_an_epoch_is_the_same_for_a_seed_and_holds_nothing_to_avoid() -> None:
    pairs = [
        Pair("I am 30.", "J'ai 30 ans."),
        Pair("I have two cats.", "J'ai deux chats."),
        Pair("Go.", "Va !"),
        *[Pair(f"Tom said {word}.", f"Tom a dit {word}.") for word in ("yes", "no", "oui", "non") * 5],
    ]
    avoid = {str(n) for n in range(100)}
    variations = Variations.of(pairs, avoid)
    assert len(variations.pairs) == 22
    epoch = variations.epoch(seed=3)
    assert epoch == variations.epoch(seed=3) != variations.epoch(seed=4)
    rows = [pair for pair in epoch if re.fullmatch(r"[\d, ]+", pair.english)]
    sentences = [pair for pair in epoch if pair not in rows]
    assert len([pair for pair in sentences if pair.english.startswith("I am")]) == 24
    assert len([pair for pair in sentences if pair.english.startswith("I have")]) == 2
    assert 0 < len(sentences) - 26 < 20
    assert not avoid & set(re.findall(r"\d+", " ".join(pair.english for pair in epoch)))
    assert len(set(sentences)) == len(sentences)
    assert all(pair.english == pair.french for pair in rows)
    assert {1, 2} < {len(pair.english.split()) for pair in rows} <= {1, 2, 3, 4}
