"""Error messages in the visitor's language."""

from __future__ import annotations

from ui.text.markdown import escape
from ui.text.numbers import join_list
from ui.text.words import ENGLISH, current_language, fill, sentences_of_errors
from viz_core.runtime.refusal import RefusalError

_MOST_LETTERS = 200
_UNKNOWN = "{detail}"
"""Key of the sentence for an error that has no translation; it shows the English message."""


def explain(error: Exception) -> str:
    """Return an error's message in the visitor's language, escaped for Markdown."""
    return escape(translate_error(error, current_language()))


def first_line(error: Exception) -> str:
    """Return the first line of another library's message, in English, escaped for Markdown."""
    return escape((str(error) or type(error).__name__).splitlines()[0][:_MOST_LETTERS])


def translate_error(error: Exception, language: str) -> str:
    """Return an error's message in a language; one without a translation is shown in English, and marked as such."""
    known = {} if language == ENGLISH else sentences_of_errors(language)
    if not known:
        return str(error)
    if not isinstance(error, RefusalError) or error.sentence not in known:
        error = RefusalError(_UNKNOWN, detail=str(error))
    values = dict(error.formatted_values)
    for name, value in error.values.items():
        if isinstance(value, tuple):
            values[name] = join_list(value, language)
        elif isinstance(value, Exception):
            values[name] = translate_error(value, language)
    return fill(known[error.sentence], dict(values), language)
