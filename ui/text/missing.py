"""What a language still lacks: `python -m ui.text.missing LANGUAGE`.

Copy assets/text/en to assets/text/LANGUAGE, translate, and run it until it prints nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import ui.text.words
from ui.text.terms import load_terms
from ui.text.words import ENGLISH, Words, languages

_FORMULA = re.compile(r"\$\$.*?\$\$|\$.*?\$", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{([\w-]+)(?::[^{}|]*(?:\|[^{}|]*)+)?\}")


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


def _faults(english: Words, other: Words) -> Iterator[str]:
    if not other.front and not other.sections:
        yield "the file is missing or empty"
        return
    if other.front.get("due"):
        yield "its English has changed since it was translated (due: true)"
    labels, translated = (words.front.get("controls", {}) for words in (english, other))
    yield from (f"no label {name}" for name in labels if name not in translated)
    for name, text in english.sections.items():
        if name not in other.sections:
            yield f"no section {name}"
        elif _placeholders(text) != _placeholders(other.sections[name]):
            yield f"section {name} has other placeholders than in English"
        elif len(_words(text)) > 5 and text == other.sections[name]:
            yield f"section {name} is still in English"
    yield from (f"section {name} does not exist in English" for name in other.sections if name not in english.sections)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", _PLACEHOLDER.sub("", _FORMULA.sub("", text)))


def _placeholders(text: str) -> set[str]:
    return set(_PLACEHOLDER.findall(_FORMULA.sub("", text)))


if __name__ == "__main__":
    faults = list(missing(sys.argv[1])) if len(sys.argv) == 2 else [__doc__ or ""]
    print(*faults, sep="\n")
    raise SystemExit(bool(faults))
