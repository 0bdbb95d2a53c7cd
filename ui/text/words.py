"""The words of a chapter, by name: assets/text/LANGUAGE/CHAPTER.md, falling back to English."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import frontmatter
import streamlit as st

from ui.streamlit_internals.script_run import in_script_run
from ui.text.numbers import plural, series
from viz_core.runtime.assets import ASSETS, AssetError, reading

TEXT = ASSETS / "text"
ENGLISH = "en"
LANGUAGE = "lang"
"""The parameter of an address that names a language."""
# "{count}", or words that go by it: "{count:token|tokens}", the plural's forms of a language in CLDR's order.
_PLACE = re.compile(r"\{([\w-]+)(?::([^{}|]*(?:\|[^{}|]*)+))?\}")
_LOOK = 2.0  # seconds in which a word that was changed shows
_FORMULA = re.compile(r"(\$\$.*?\$\$|\$.*?\$)", re.DOTALL)


@dataclass(frozen=True)
class Words:
    """A chapter's front matter (title, labels of controls) and its named sections."""

    chapter: str
    front: dict[str, Any]
    sections: dict[str, str]
    language: str = ENGLISH

    def __call__(self, name: str, **values: object) -> str:
        """The section of this name, with each {key} replaced by its value.

        Only keys that are given are replaced, so formulas keep their braces.
        """
        if name not in self.sections:
            raise AssetError("{file}.md has no section {name!r}", file=self.chapter, name=name)
        return fill(self.sections[name], values, self.language)

    def group(self, prefix: str) -> dict[str, str]:
        """Every section called PREFIX.NAME, by NAME: the labels of a figure, say."""
        start = f"{prefix}."
        return {name.removeprefix(start): text for name, text in self.sections.items() if name.startswith(start)}

    def has(self, name: str) -> bool:
        return name in self.sections

    def label(self, name: str) -> str:
        """The label of a control."""
        labels = self.front.get("controls", {})
        if name not in labels:
            raise AssetError("{file}.md has no label for the control {name!r}", file=self.chapter, name=name)
        return str(labels[name])

    @property
    def prefix(self) -> str:
        """What the chapter's parameters in an address begin with: its initials."""
        return "".join(word[0] for word in self.chapter.split("-"))

    @property
    def stem(self) -> str:
        """What files of the chapter are called: its title where that can be written in ASCII, else its name."""
        return self.chapter if self.language == ENGLISH else stem_of(self.title) or self.chapter

    def stem_of_part(self, section: str, part: str) -> str:
        """What a file of a part of it is called: as its button says, likewise."""
        said = "" if self.language == ENGLISH else stem_of(self(section).replace("(CSV)", ""))
        return f"{self.stem}.{said or part}"

    @property
    def title(self) -> str:
        if "title" not in self.front:
            raise AssetError("{file}.md has no title", file=self.chapter)
        return str(self.front["title"])

    @property
    def menu(self) -> str:
        """The name in the table of contents: the title. Home alone has another, for its title is the Atlas."""
        return str(self.front.get("menu", self.title))


def stem_of(text: str) -> str:
    """A name of a file, small letters, digits and hyphens; "" where letters have no place in ASCII.

    >>> stem_of("Codificação senoidal")
    'codificacao-senoidal'
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    return "-".join(re.findall(r"[a-z0-9]+", plain)) if not re.search(r"[^\W\x00-\x7f]", plain) else ""


def fill(text: str, values: dict[str, object], language: str = ENGLISH) -> str:
    """The text with each {key} replaced by its value, numbers as the language writes them; in formulas as they are.

    Several values in one stand in a row, a list; or each by its name, a mapping. Words that go by a number say so:
    "{count} {count:token|tokens}".
    """
    said = {key: series(value, ENGLISH) for key, value in values.items()}
    if language == ENGLISH:
        return _replaced(text, said, said, language)
    local = {key: series(value, language) for key, value in values.items()}
    parts = _FORMULA.split(text)
    return "".join(_replaced(part, said if i % 2 else local, said, language) for i, part in enumerate(parts))


def _replaced(text: str, values: dict[str, str], numbers: dict[str, str], language: str) -> str:
    def put(place: re.Match[str]) -> str:
        name, forms = place.groups()
        if name not in values:
            return place[0]
        return values[name] if forms is None else plural(numbers[name], forms.split("|"), language)

    return _PLACE.sub(put, text)


def load_words(chapter: str, language: str | None = None) -> Words:
    """Words of a chapter in `language` (the reader's unless given), English where they lack one."""
    return _words(TEXT, chapter, language or current_language(), int(time.monotonic() / _LOOK))


@lru_cache(maxsize=64)
def _words(_folder: Path, chapter: str, wanted: str, _time: int) -> Words:
    """The files are looked at now and then: a page asks a hundred times, and each look gives way to all other pages."""
    english = _read(chapter, ENGLISH)
    if wanted == ENGLISH:
        return english
    other = _read(chapter, wanted)
    controls = {**english.front.get("controls", {}), **other.front.get("controls", {})}
    sections = {**english.sections, **other.sections}
    return Words(chapter, {**english.front, **other.front, "controls": controls}, sections, wanted)


def sentences_of_errors(language: str) -> dict[str, str]:
    """What errors say in a language, by what they say in English: all that is English stands in code."""
    return _read("errors", language).sections


def languages() -> tuple[str, ...]:
    """What the Atlas speaks, English first."""
    return _languages(TEXT)


def current_language() -> str:
    """What the address asks for (?lang=), else what was chosen in this window, else what the browser speaks."""
    if not in_script_run():
        return ENGLISH
    if (asked := st.query_params.get(LANGUAGE)) in languages():
        st.session_state[LANGUAGE] = asked
    chosen = st.session_state.get(LANGUAGE)
    return chosen if chosen in languages() else browser_language()


def browser_language() -> str:
    """The reader's own or one near to it ("pt-BR" for "pt"), where the Atlas speaks one; else English."""
    return match_language([st.context.locale or ENGLISH])


def match_language(wanted: Iterable[str]) -> str:
    """The first of these that the Atlas speaks, itself or one near to it; else English."""
    for locale in wanted:
        near = [name for name in languages() if name.split("-")[0] == locale.split("-")[0]]
        if near:
            return locale if locale in near else near[0]
    return ENGLISH


@lru_cache(maxsize=4)
def _languages(folder: Path) -> tuple[str, ...]:
    found = sorted(path.name for path in folder.iterdir() if path.is_dir())
    return tuple(sorted(found, key=ENGLISH.__ne__))


def _read(chapter: str, language: str) -> Words:
    path = TEXT / language / f"{chapter}.md"
    if language != ENGLISH and not path.is_file():
        return Words(chapter, {}, {})
    with reading(path):
        return _parse(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _parse(path: Path, _modified: int) -> Words:
    post = frontmatter.loads(path.read_text(encoding="utf-8"))
    parts = re.split(r"^## (.+)$", post.content, flags=re.MULTILINE)
    names, bodies = parts[1::2], parts[2::2]
    sections = {name.strip(): body.strip() for name, body in zip(names, bodies, strict=True)}
    return Words(path.stem, dict(post.metadata), sections)
