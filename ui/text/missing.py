"""What a language still lacks: `python -m ui.text.missing LANGUAGE`.

Copy assets/text/en to assets/text/LANGUAGE, translate, and run it until it prints nothing.
"""

import re
import sys
from collections.abc import Iterator

import ui.text.words
from ui.text.translations import load_terms
from ui.text.words import ENGLISH, Words, languages

_FORMULA = re.compile(r"\$\$.*?\$\$|\$.*?\$", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{([\w-]+)(?::[^{}|]*(?:\|[^{}|]*)+)?\}")
# What a translation keeps as it is: targets of links, icons, and the marks of the answers to a question.
_UNCHANGED = re.compile(r"\]\(([^)]+)\)|(:material/\w+:)|^- \[([^\]]+)\] ", re.MULTILINE)

_SAMPLES = ("start.", "preset.")  # sentences for models, which read English


def missing(language: str) -> Iterator[str]:
    """Yield a line for each file, label, section, placeholder or term that a language lacks, or has too much."""
    if language not in languages():
        yield f"there is no folder assets/text/{language}; there are {', '.join(languages())}"
        return
    for path in sorted((ui.text.words.TEXT / ENGLISH).glob("*.md")):
        english, other = (ui.text.words._read(path.stem, each) for each in (ENGLISH, language))
        yield from (f"{path.name}: {fault}" for fault in _faults(english, other))
    errors = {each: ui.text.words.sentences_of_errors(each) for each in languages() if each != ENGLISH}
    every = sorted({text for translated in errors.values() for text in translated})
    yield from (f"errors.md: no section {text}" for text in every if text not in errors.get(language, every))
    yield from (f"terms.csv: no term {name}" for name in load_terms(ENGLISH) if name not in load_terms(language))


def is_due(words: Words) -> bool:
    """Whether the English of a chapter has changed since it was translated."""
    return bool(words.front.get("due"))


def _faults(english: Words, other: Words) -> Iterator[str]:
    if not other.front and not other.sections:
        yield "the file is missing or empty"
        return
    if is_due(other):
        yield "its English has changed since it was translated (due: true)"
    yield from (f"no entry {name} above its sections" for name in english.front if name not in other.front)
    labels, translated = (words.front.get("controls", {}) for words in (english, other))
    yield from (f"no label {name}" for name in labels if name not in translated)
    yield from (f"label {name} does not exist in English" for name in translated if name not in labels)
    for name, text in english.sections.items():
        if not other.sections.get(name):
            yield f"no section {name}"
        elif _placeholders(text) != _placeholders(other.sections[name]):
            yield f"section {name} has other placeholders than in English"
        elif _unchanged(text) != _unchanged(other.sections[name]):
            yield f"section {name} has other links, icons, answers or formulas than in English"
        elif len(_words(text)) > 5 and text == other.sections[name] and not name.startswith(_SAMPLES):
            yield f"section {name} is still in English"
    yield from (f"section {name} does not exist in English" for name in other.sections if name not in english.sections)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", _PLACEHOLDER.sub("", _FORMULA.sub("", text)))


def _placeholders(text: str) -> set[str]:
    return set(_PLACEHOLDER.findall(_FORMULA.sub("", text)))


def _unchanged(text: str) -> tuple[set[str], list[str], int]:
    """Return targets of links and icons, the marks of answers in their order, and how many formula signs there are."""
    found = _UNCHANGED.findall(text)
    return {link or icon for link, icon, _ in found} - {""}, [mark for _, _, mark in found if mark], text.count("$")


if __name__ == "__main__":
    faults = list(missing(sys.argv[1])) if len(sys.argv) == 2 else [__doc__ or ""]
    print(*faults, sep="\n")
    raise SystemExit(bool(faults))
