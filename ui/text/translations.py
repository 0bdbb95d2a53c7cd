"""What a language calls things: error messages, terms, and the device."""

import csv
import re
from functools import lru_cache
from pathlib import Path
from string import Formatter

import ui.text.words
from ui.text.markdown import escape
from ui.text.numbers import Name, join_list
from ui.text.words import ENGLISH, current_language, fill, languages, load_words, sentences_of_errors
from viz_core.runtime.assets import reading
from viz_core.runtime.refusal import RefusalError

_MAX_LETTERS = 200
_UNKNOWN = "{detail}"
"""Key of the sentence for an error that has no translation; it shows the English message."""


def explain(error: Exception) -> str:
    """Return an error's message in the visitor's language, escaped for Markdown."""
    return escape(translate_error(error, current_language()))


def first_line(error: Exception) -> str:
    """Return the first line of another library's message, in English, escaped for Markdown."""
    return escape((str(error) or type(error).__name__).splitlines()[0][:_MAX_LETTERS])


def translate_error(error: Exception, language: str) -> str:
    """Return an error's message in a language; one without a translation is shown in English, and marked as such."""
    known = {} if language == ENGLISH else sentences_of_errors(language)
    if not known:
        return str(error)
    if not isinstance(error, RefusalError) or error.sentence not in known:
        error = RefusalError(_UNKNOWN, detail=str(error))
    values = _formatted_values(error)
    for name, value in error.values.items():
        if isinstance(value, tuple):
            values[name] = join_list(value, language)
        elif isinstance(value, Exception):
            values[name] = translate_error(value, language)
        elif isinstance(value, str) and (quoted := _inside_quotes(value, values[name])):
            values[name] = load_words("common", language)("book.quote", quote=Name(quoted))
    return re.sub(" ?(「[^」]*」) ?", r"\1", fill(known[error.sentence], dict(values), language))


def _formatted_values(error: RefusalError) -> dict[str, str]:
    """Return the values as the English message has them, but for lists."""
    formatter, formatted = Formatter(), {}
    for _, name, spec, conversion in formatter.parse(error.sentence):
        if name is not None:
            value = formatter.convert_field(error.values[name], conversion)
            formatted[name] = formatter.format_field(value, spec or "")
    return formatted


def _inside_quotes(value: str, formatted: str) -> str:
    """Return what an English message puts between quotation marks, "" if it has none."""
    if value[:1] + value[-1:] == "“”":
        return value[1:-1]
    return value if formatted == repr(value) else ""


def load_terms(language: str) -> dict[str, tuple[str, ...]]:
    """Return the forms of every term by its name, the one for headings first; empty where a language has no list."""
    return _read(ui.text.words.TEXT / language / "terms.csv")


def translations(language: str) -> dict[str, str]:
    """Return for each form of a term in a language what the other languages say: "query": "consulta · 查詢"."""
    return _translations(ui.text.words.TEXT, language)


@lru_cache(maxsize=8)
def _translations(_folder: Path, language: str) -> dict[str, str]:
    others = [load_terms(other) for other in languages() if other != language]
    return {
        form: " · ".join(other[name][0] for other in others if name in other)
        for name, forms in load_terms(language).items()
        for form in forms
    }


@lru_cache(maxsize=16)
def _read(path: Path) -> dict[str, tuple[str, ...]]:
    if not path.is_file():
        return {}
    with reading(path):
        rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        return {row["name"]: tuple(row["forms"].split(";")) for row in rows}


def device_name(described: str) -> str:
    """Return a device as `describe_device` names it, in words: "CPU, 2 núcleos"."""
    cores = re.fullmatch(r"CPU, (\d+) cores", described)
    return load_words("common")("device-cpu", count=cores[1]) if cores else described
