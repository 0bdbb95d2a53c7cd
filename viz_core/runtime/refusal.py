"""Errors for a person: a sentence and the values in it, which whoever speaks another language puts into their own."""

from __future__ import annotations

from functools import partial
from string import Formatter
from typing import Any


class RefusalError(Exception):
    """Something that cannot be done, said as a sentence.

    The sentence is a literal, in English. It is its own name: translations are kept under it, as in GNU gettext.

    >>> refusal = RefusalError("This text has {count:,} tokens.", count=1024)
    >>> str(refusal), refusal.sentence, refusal.values
    ('This text has 1,024 tokens.', 'This text has {count:,} tokens.', {'count': 1024})

    Attributes:
        sentence: with a place for each value, as `str.format` takes it.
        values: by the names of their places; several names in one are a tuple.
    """

    def __init__(self, sentence: str, /, **values: object) -> None:
        self.sentence, self.values = sentence, values
        super().__init__(sentence.format(**{name: _listed(value) for name, value in values.items()}))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((type(self), str(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Whole after a way through a pipe."""
        return partial(type(self), self.sentence, **self.values), ()

    @property
    def said(self) -> dict[str, str]:
        """The values as they stand in the message."""
        form, found = Formatter(), {}
        for _, name, spec, conversion in form.parse(self.sentence):
            if name is not None:
                value = form.convert_field(_listed(self.values[name]), conversion)
                found[name] = form.format_field(value, spec or "")
        return found


def _listed(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    names = [str(each) for each in value]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
