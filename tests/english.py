"""English that is left where another language is spoken: words, and numbers."""

from __future__ import annotations

import re

# Code, formulas, targets of links, marks of predictions, tags, icons, names of files and of models, quotations, and
# tokens with the mark of a space.
_NO_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$.*?\$|\]\([^)]*\)|^- \[[^\]]*\]|\{[^{}]*\}|<[^>]*>|:[\w-]+/\w+:|:[\w-]+\[|"
    r"https?://\S+|www\.\S+|\b[\w./-]+\.(?:json|txt|md|org)\b|\b\w+-en(?:-fr)?\b|[“\"][^”\"]*[”\"]|「[A-Za-z][^」]*」|\*[A-Za-z][^*]*\*|·[A-Za-z]+",
    re.DOTALL | re.MULTILINE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# Not "1.024", a thousand, nor a head's or a model's name; nor a section of the book or a licence, which are left out.
_POINT = re.compile(r"(?<![\w.,/-])(?!(?:[1-9]\d{0,2}(?:\.\d{3})+)(?!\d))\d+\.\d+(?![.\w])")
_NUMBERED = re.compile(r"\((?:\w+ )?1[01]\.\d[\d.]*|CC BY \d\.\d|\bseç(?:ão|ões) \d+\.\d+(?:\.\d+)?")

# Words without which hardly an English sentence is made, and none of them a Portuguese word.
_OF_GRAMMAR = frozenset(
    "the of and is are was were be been with from this that these those which what where when how why who by to on at "
    "into onto over under between within without through its it they their them there here than then not cannot have "
    "has had can could would should will shall may might must each every all both other others another such only also "
    "more most less least fewer same own very too even still already yet ever never always often again".split()
)
# Names and titles that have such words in them.
_NAMES = (
    "Listen, Attend and Spell",
    "squeeze and excitation",
    "Wang and Chen",
    "Abnar and Zuidema",
    "CC BY",
    "all-MiniLM",
    "Learn to code",
    "Dive into",
)


def prose(text: str) -> str:
    """The text without what stands in every language as it is."""
    for name in _NAMES:
        text = text.replace(name, " ")
    return _NO_PROSE.sub(" · ", text)


def grammar_words(text: str) -> list[str]:
    """Words of English grammar in the prose of a text."""
    return [word for word in _WORD.findall(prose(text)) if word.lower() in _OF_GRAMMAR]


def decimal_points(text: str) -> list[str]:
    """Numbers in the prose of a text that have a point before their decimals, where a language has a comma."""
    return _POINT.findall(prose(_NUMBERED.sub(" ", text)))
