"""Error messages in the visitor's language."""

from __future__ import annotations

import re
from string import Formatter

from ui.text.markdown import escape
from ui.text.numbers import Name, join_list
from ui.text.words import ENGLISH, current_language, fill, load_words, sentences_of_errors
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
