"""Augmentation of sentence pairs: a number or a name on both sides is replaced by another one on both.

So a translator learns to copy what it never saw (Currey 2017, "Copied Monolingual Data Improves Low-Resource Neural
Machine Translation", shows that pairs to copy from help with names and numbers).
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from recipes.sentence_pairs import Pair

# Words for numbers that stand alone: "two" as "deux", but not in "twenty-two" or "two hundred".
_ENGLISH = "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty".split()
_FRENCH = "deux trois quatre cinq six sept huit neuf dix onze douze quinze vingt trente quarante cinquante".split()
NUMBER_WORDS = dict(zip(_ENGLISH, _FRENCH, strict=True))
_LARGER = r"(?![\w-]|\s(?:hundred|thousand|million|billion|cents?|mille|millions?|milliards?)\b)"
_ENGLISH_WORD, _FRENCH_WORD = (
    re.compile(rf"(?<![\w-])(?:{'|'.join(words)}){_LARGER}") for words in (_ENGLISH, _FRENCH)
)

_DIGITS = re.compile(r"\d+")
_NAME = re.compile(r"(?<![\w-])[A-Z][a-z]{2,}(?![\w-])")
_LOWER = re.compile(r"(?<![\w-])[^\W\d_A-Z]+")
_ARTICLES = r"(?:\b(?:the|le|la|les|du|des|aux?|en)\s|\bl')"  # "au Canada", "la Seine": these say more than a name

_ONSETS = "b br d dr f g gr k kl l m n p pl r s st t tr v vl z".split()
_VOWELS = "a e i o u ai ou".split()
_CODAS = ["", "", "", "n", "r", "l", "s", "k", "th", "m"]
_FAR = "ąćčďęğįłńňőřśşšťůűźżžđøåþ"  # letters of names from elsewhere, most of which no pair has
_TRIES = 40
_REPEATS = 0.4  # how often a digit is the one before it, beside the tenth that chance gives
_JOINED = 1 / 3
_COPIES = 24  # of a pair with digits in each epoch, for they are few
_ROWS = 12_000  # rows of numbers alone in each epoch, at most
_LENGTHS = (1, 2, 2, 2, 3, 3, 4, 4, 5)  # of numbers, in digits


class Varied(NamedTuple):
    """A pair with other numbers and names in it, and which."""

    pair: Pair
    numbers: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Variations:
    """The pairs that can be varied, and what must be known to do it."""

    pairs: tuple[Pair, ...]
    ordinary: frozenset[str]  # words that stand in lower case somewhere: with a capital they are not names
    avoid: frozenset[str] = frozenset()  # numbers and names that are for the test

    @classmethod
    def of(cls, pairs: Iterable[Pair], avoid: Collection[str] = ()) -> "Variations":
        """Those among `pairs` that hold what can be varied."""
        every = list(pairs)
        ordinary = lower_case_words(every)
        variable = tuple(
            pair for pair in every if numbers_of(pair) or number_words_of(pair) or names_of(pair, ordinary)
        )
        return cls(variable, ordinary, frozenset(avoid))

    def epoch(self, seed: int) -> list[Pair]:
        """Varied pairs to train on beside those as they are: the same for a seed, others for another.

        Pairs with digits are few, so each comes two dozen times; with words for numbers, twice; with names alone, every
        other time. Hardest to copy are digits that repeat ("333") and many numbers in a row, both rare: digits repeat
        more often than by chance, every third pair with numbers is joined with the one before, and rows of nothing but
        numbers come besides.
        """
        found: list[Pair] = []
        before: Pair | None = None  # the last one with numbers
        for place, pair in enumerate(self.pairs):
            mix = random.Random(f"{seed} {place}")
            copies = _COPIES if numbers_of(pair) else 2 if number_words_of(pair) else mix.randint(0, 1)
            varied = (vary(pair, self.ordinary, mix, self.avoid, repeats=_REPEATS) for _ in range(copies))
            for each in varied:
                if each is None:
                    continue
                if each.numbers and before is not None and mix.random() < _JOINED:
                    found.append(_in_a_row(each.pair, before))
                else:
                    found.append(each.pair)
                before = each.pair if each.numbers else before
        mix = random.Random(f"{seed} rows")
        rows = (_numbers_alone(mix, self.avoid) for _ in range(min(_ROWS, len(found))))
        return found + [Pair(row, row) for row in rows if row]


def vary(
    pair: Pair,
    ordinary: Collection[str],
    mix: random.Random,
    avoid: Collection[str] = (),
    *,
    numbers: bool = True,
    names: bool = True,
    repeats: float = 0.0,
) -> Varied | None:
    """The pair with other numbers and invented names where they stand on both sides; None where there are none.

    Digits keep the signs around them, which differ by language ("1,000" and "1 000", "2:30" and "2 h 30"); minutes stay
    below 60, ordinals as they are.

    Args:
        ordinary: words that are not names, in lower case.
        avoid: what shall not be put in.
        repeats: how often a digit of a new number is the one before it, beside what chance gives.
    """
    new: dict[str, str] = {}
    beside = set(_DIGITS.findall(pair.english))

    def put(old: str, draw: Callable[[], str]) -> None:
        """Another in the place of the old one, which nothing else has; the old one stays where none is found."""
        drawn = (draw() for _ in range(_TRIES))
        if (fresh := next((each for each in drawn if each not in beside and each not in avoid), None)) is not None:
            new[old] = fresh
            beside.add(fresh)

    words = number_words_of(pair) if numbers else {}
    kinds = {**numbers_of(pair), **dict.fromkeys(words, "plain")} if numbers else {}
    for old, kind in kinds.items():
        put(old, partial(_number, kind, len(old), mix, repeats))
    for name in names_of(pair, ordinary) if names else ():
        put(name, partial(invented_name, mix, name[0] in "AEIOU"))
    if not new:
        return None
    french = {words.get(old, old): put for old, put in new.items()}
    put_numbers = tuple(put for put in new.values() if put.isdigit())
    put_names = tuple(put for put in new.values() if not put.isdigit())
    return Varied(Pair(_replace(pair.english, new), _replace(pair.french, french)), put_numbers, put_names)


def numbers_of(pair: Pair) -> dict[str, str]:
    """Digits that stand on both sides and may become others, with their kind: "hour", "minute", "joined" or "plain".

    None where one side has digits that the other has not: "4:00 p.m." as "16 h 00" is not a copy.
    """
    english, french = ([found[0] for found in _DIGITS.finditer(text)] for text in pair)
    if sorted(english) != sorted(french):
        return {}
    kinds: dict[str, str] = {}
    for found in _DIGITS.finditer(pair.english):
        kinds.setdefault(found[0], _kind(pair.english, found))
        if _kind(pair.english, found) == "fixed":
            kinds[found[0]] = "fixed"
    return {digits: kind for digits, kind in kinds.items() if kind != "fixed"}


def number_words_of(pair: Pair) -> dict[str, str]:
    """Words for numbers that stand once on both sides, English to French; none where digits stand beside them."""
    if _DIGITS.search(pair.english) or _DIGITS.search(pair.french):
        return {}
    english = _ENGLISH_WORD.findall(pair.english)
    french = _FRENCH_WORD.findall(pair.french) if english else []
    both = {word: NUMBER_WORDS[word] for word in english}
    return {one: other for one, other in both.items() if english.count(one) == french.count(other) == 1}


def names_of(pair: Pair, ordinary: Collection[str]) -> list[str]:
    """Names that stand on both sides, without an article: words with a capital that nowhere stand in lower case.

    Those that begin with H or Y are left out, for French elides before some of them alone.
    """
    french = set(_NAME.findall(pair.french))
    return [
        name
        for name in dict.fromkeys(_NAME.findall(pair.english))
        if name in french
        and name[0] not in "HY"
        and name.lower() not in ordinary
        and not any(re.search(rf"{_ARTICLES}{name}\b", text, re.IGNORECASE) for text in pair)
    ]


def lower_case_words(pairs: Iterable[Pair], least: int = 2) -> frozenset[str]:
    """Words of either side that begin with a small letter, at least so often: once may be a slip."""
    counts = Counter(word for pair in pairs for text in pair for word in _LOWER.findall(text))
    return frozenset(word for word, count in counts.items() if count >= least)


def invented_name(mix: random.Random, vowel: bool) -> str:
    """Two or three syllables; now and then with a letter of a language far away."""
    letters = "".join(
        ("" if vowel and place == 0 else mix.choice(_ONSETS)) + mix.choice(_VOWELS) + mix.choice(_CODAS)
        for place in range(mix.choice((2, 2, 3)))
    )
    if mix.random() < 0.125:
        place = mix.randrange(1, len(letters))
        letters = letters[:place] + mix.choice(_FAR) + letters[place + 1 :]
    return letters.capitalize()


def _numbers_alone(mix: random.Random, avoid: Collection[str]) -> str:
    """One to four numbers, without those to avoid."""
    drawn = (_digits(mix.choice(_LENGTHS), mix, _REPEATS) for _ in range(mix.randint(1, 4)))
    return mix.choice((" ", ", ")).join(number for number in drawn if number not in avoid)


def _in_a_row(pair: Pair, other: Pair) -> Pair:
    return Pair(f"{pair.english} {other.english}", f"{pair.french} {other.french}")


def _kind(text: str, found: re.Match[str]) -> str:
    """What digits are, by what stands around them: 0, 1 and ordinals are fixed, for words about them would change."""
    before, after = text[: found.start()], text[found.end() :]
    if re.match(r"[^\W\d]", after) or re.search(r"[^\W\d]$", before):
        return "fixed"
    if re.search(r"\d:$", before):
        return "minute"
    if re.match(r":\d", after):
        return "hour"
    if re.search(r"\d[.,/-]$", before) or re.match(r"[.,/-]\d", after):
        return "joined" if re.search(r"\d[.,/-]$", before) else "leading"
    return "fixed" if found[0] in ("0", "1") else "plain"


def _number(kind: str, length: int, mix: random.Random, repeats: float) -> str:
    if kind == "minute":
        return f"{mix.randrange(60):02d}"
    if kind == "hour":
        return str(mix.randint(2, 12))
    if kind == "joined":
        return "".join(mix.choice("0123456789") for _ in range(length))
    if kind == "plain":
        length = mix.choice(_LENGTHS)
    return _digits(length, mix, repeats)


def _digits(length: int, mix: random.Random, repeats: float) -> str:
    low = 2 if length == 1 else 10 ** (length - 1)
    digits = list(str(mix.randrange(low, 10**length)))
    for place in range(1, length):
        if repeats and mix.random() < repeats:
            digits[place] = digits[place - 1]
    return "".join(digits)


def _replace(text: str, new: Mapping[str, str]) -> str:
    """All at once, so that nothing that was put in is replaced again."""
    digits, words = ("|".join(old for old in new if old.isdigit() is numeric) or "(?!)" for numeric in (True, False))
    either = rf"(?<!\d)(?:{digits})(?!\d)|(?<![\w-])(?:{words})(?![\w-])"
    return re.sub(either, lambda found: new[found[0]], text)
