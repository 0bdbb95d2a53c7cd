"""Errors shown to users: a translatable sentence and the values in it."""

from functools import partial
from typing import Any


class RefusalError(Exception):
    """An error whose message is a sentence for the user.

    The sentence is a literal, in English, and the key of its translations, as in GNU gettext.

    >>> refusal = RefusalError("This text has {count:,} tokens.", count=1024)
    >>> str(refusal), refusal.sentence, refusal.values
    ('This text has 1,024 tokens.', 'This text has {count:,} tokens.', {'count': 1024})

    Attributes:
        sentence: with a placeholder for each value, as in `str.format`.
        values: by the names of their placeholders; a tuple is written as a list of names.
    """

    def __init__(self, sentence: str, /, **values: object) -> None:
        self.sentence, self.values = sentence, values
        super().__init__(sentence.format(**{name: _as_text(value) for name, value in values.items()}))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((type(self), str(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling."""
        return partial(type(self), self.sentence, **self.values), ()


def _as_text(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    names = [str(each) for each in value]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
