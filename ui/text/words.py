"""The words of a chapter, by name: assets/text/LANGUAGE/CHAPTER.md, then shared.md, with English as the fallback."""

import re
import time
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import frontmatter
import streamlit as st

from ui.streamlit_internals.script_run import in_script_run, once_per_run
from ui.text.numbers import in_formula, plural, series
from viz_core.runtime.assets import ASSETS, AssetError, reading
from viz_core.view.components import languages as languages_in

TEXT = ASSETS / "text"
ENGLISH = "en"
SHARED = "shared"
"""The file of the sections that several chapters have in common; a chapter's own section comes before it."""
LANGUAGE = "lang"
"""The query parameter that selects a language."""
COOKIE = "atlas-language"
"""The cookie in which a browser keeps the language that its reader chose."""
# "{count}", or a word in its plural forms, in the order of CLDR: "{count:token|tokens}".
_PLACEHOLDER = re.compile(r"\{([\w-]+)(?::([^{}|]*(?:\|[^{}|]*)+))?\}")
_MAX_AGE = 2.0  # seconds for which a file is not read again
_FORMULA = re.compile(r"(\$\$.*?\$\$|\$.*?\$)", re.DOTALL)


_PREFIXES = {"heads": "hs"}  # "h" is that of home


@dataclass(frozen=True)
class Words:
    """A chapter's front matter (title, labels of controls), its named sections, and those that chapters share."""

    chapter: str
    front: dict[str, Any]
    sections: dict[str, str]
    language: str = ENGLISH
    shared: dict[str, str] = field(default_factory=dict)

    def __call__(self, name: str, /, **values: object) -> str:
        """Return the section of this name, with each {key} replaced by its value.

        Only given keys are replaced, so formulas keep their braces.
        """
        text = self.sections.get(name) or self.shared.get(name)
        if text is None:
            raise AssetError("{file}.md has no section {name!r}", file=self.chapter, name=name)
        return fill(text, values, self.language)

    def group(self, prefix: str) -> dict[str, str]:
        """Return every section PREFIX.NAME by its NAME, the labels of a figure for example."""
        start = f"{prefix}."
        texts = {**self.shared, **self.sections}
        return {name.removeprefix(start): text for name, text in texts.items() if name.startswith(start)}

    def has(self, name: str) -> bool:
        return name in self.sections or name in self.shared

    def label(self, name: str) -> str:
        """Return the label of a control."""
        labels = self.front.get("controls", {})
        if name not in labels:
            raise AssetError("{file}.md has no label for the control {name!r}", file=self.chapter, name=name)
        return str(labels[name])

    @cached_property
    def prefix(self) -> str:
        """Prefix of the chapter's query parameters: its initials, where no other chapter had them first."""
        return _PREFIXES.get(self.chapter) or "".join(word[0] for word in self.chapter.split("-"))

    @property
    def stem(self) -> str:
        """Name of the chapter's downloads: its title if that can be written in ASCII, else its name."""
        return self.chapter if self.language == ENGLISH else stem_of(self.title) or self.chapter

    def stem_of_part(self, section: str, part: str) -> str:
        """Return the name of a download of a part: after its button if that can be written in ASCII."""
        label = "" if self.language == ENGLISH else stem_of(self(section).replace("(CSV)", ""))
        return f"{self.stem}.{label or part}"

    @property
    def title(self) -> str:
        if "title" not in self.front:
            raise AssetError("{file}.md has no title", file=self.chapter)
        return str(self.front["title"])

    @property
    def menu(self) -> str:
        """Name in the table of contents: the title, except for home, whose title is that of the Atlas."""
        return str(self.front.get("menu", self.title))


def stem_of(text: str) -> str:
    """Return a file name of lower-case letters, digits and hyphens; "" if the text cannot be written in ASCII.

    >>> stem_of("Codificação senoidal")
    'codificacao-senoidal'
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    return "-".join(re.findall(r"[a-z0-9]+", plain)) if not re.search(r"[^\W\x00-\x7f]", plain) else ""


def fill(text: str, values: dict[str, object], language: str = ENGLISH) -> str:
    """Return the text with each {key} replaced by its value, numbers in the language's format.

    A value may be a list or a mapping. A word in the plural form of a number: "{count} {count:token|tokens}".
    """
    if not values and (language == ENGLISH or "$" not in text):
        return text
    forms = {key: _forms(value, language) for key, value in values.items()}

    def replaced(part: str, in_latex: bool) -> str:
        def value_of(match: re.Match[str]) -> str:
            name, plurals = match.groups()
            if name not in forms:
                return match[0]
            if plurals is not None:
                return plural(forms[name].english, plurals.split("|"), language)
            return forms[name].in_latex if in_latex else forms[name].in_text

        return _PLACEHOLDER.sub(value_of, in_formula(part, language) if in_latex else part)

    return "".join(replaced(part, in_latex=i % 2 == 1) for i, part in enumerate(_FORMULA.split(text)))


class _Forms(NamedTuple):
    """A value as it is written in English, in a text of a language, and in its formulas."""

    english: str
    in_text: str
    in_latex: str


def _forms(value: object, language: str) -> _Forms:
    english = series(value, ENGLISH)
    local = english if language == ENGLISH else series(value, language)
    latex = in_formula(english, language, is_number=english != local).replace("−", "-")  # LaTeX's own minus sign
    return _Forms(english, local, latex)


def load_words(chapter: str, language: str | None = None) -> Words:
    """Return the words of a chapter in `language`, else in the visitor's; in English where one is missing."""
    return _words(TEXT, chapter, language or current_language(), int(time.monotonic() / _MAX_AGE))


@lru_cache(maxsize=64)
def _words(_folder: Path, chapter: str, language: str, _time: int) -> Words:
    """Load words at most once in `_MAX_AGE`: a page needs them a hundred times, and each read yields the thread."""
    english = _read(chapter, ENGLISH)
    shared = {} if chapter == SHARED else _read(SHARED, ENGLISH).sections
    if language == ENGLISH:
        return replace(english, shared=shared)
    other = _read(chapter, language)
    controls = {**english.front.get("controls", {}), **other.front.get("controls", {})}
    sections = {**english.sections, **other.sections}
    if chapter != SHARED:
        shared = {**shared, **_read(SHARED, language).sections}
    front = {**english.front, **other.front, "controls": controls}
    return Words(chapter, front, sections, language, shared=shared)


def sentences_of_errors(language: str) -> dict[str, str]:
    """Return the translations of error messages, by their English text, which is in the code."""
    return _read("errors", language).sections


def streamlit_labels(language: str) -> dict[str, str]:
    """Return the translations of Streamlit's own labels, by their English; none for English."""
    if language == ENGLISH:
        return {}
    english, other = load_words("common", ENGLISH), load_words("common", language)
    labels = english.group("streamlit")
    return {labels[name]: text for name, text in other.group("streamlit").items()}


def languages() -> tuple[str, ...]:
    """Return the languages of the Atlas, English first."""
    return _languages(TEXT)


def current_language() -> str:
    """Return the language of the URL (?lang=), else of this window, else the one this browser's reader chose before."""
    return once_per_run(LANGUAGE, _current_language) if in_script_run() else ENGLISH


def _current_language() -> str:
    offered, requested = languages(), st.query_params.get(LANGUAGE)
    if requested in offered:
        st.session_state[LANGUAGE] = requested
        return requested
    chosen = st.session_state.get(LANGUAGE)
    return chosen if chosen in offered else preferred_language()


def preferred_language() -> str:
    """Return the language that the reader chose in this browser at an earlier visit, else the browser's own."""
    chosen = st.context.cookies.get(COOKIE)
    return chosen if chosen in languages() else browser_language()


def browser_language() -> str:
    """Return the browser's language or a variant of it ("pt-BR" for "pt") if the Atlas has one, else English."""
    return match_language([st.context.locale or ENGLISH])


def match_language(locales: Iterable[str]) -> str:
    """Return the first of these languages that the Atlas has, itself or a variant of it, else English."""
    offered = languages()
    for locale in locales:
        variants = [name for name in offered if name.split("-")[0] == locale.split("-")[0]]
        if variants:
            return locale if locale in variants else variants[0]
    return ENGLISH


@lru_cache(maxsize=4)
def _languages(folder: Path) -> tuple[str, ...]:
    return languages_in(folder)


def _read(chapter: str, language: str) -> Words:
    path = TEXT / language / f"{chapter}.md"
    modified = path.stat().st_mtime_ns if path.is_file() else 0
    return _parse(path, modified) if modified or language == ENGLISH else Words(chapter, {}, {})


@lru_cache(maxsize=64)
def _parse(path: Path, _modified: int) -> Words:
    with reading(path):
        post = frontmatter.loads(path.read_text(encoding="utf-8"))
        parts = re.split(r"^## (.+)$", post.content, flags=re.MULTILINE)
        names, bodies = parts[1::2], parts[2::2]
        sections = {name.strip(): body.strip() for name, body in zip(names, bodies, strict=True)}
        return Words(path.stem, dict(post.metadata), sections)
