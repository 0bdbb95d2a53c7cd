"""Languages and tasks of a speech model, from its generation config."""

import re
from typing import Any

_TASKS = ("transcribe", "translate")
_LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")


def languages_of(generation_config: Any, num_words: int) -> tuple[str, ...]:
    """Codes like "en", sorted; none for a model of one language.

    Args:
        num_words: of the model: a mark beyond them would be no token of it.
    """
    named = _marks(generation_config, "lang_to_id", num_words)
    return tuple(sorted(found[1] for found in map(_LANGUAGE.fullmatch, named) if found))


def tasks_of(generation_config: Any, num_words: int) -> tuple[str, ...]:
    """Tasks that can be requested: "transcribe", and "translate" into English."""
    named = _marks(generation_config, "task_to_id", num_words)
    return tuple(task for task in _TASKS if task in named)


def _marks(generation_config: Any, table: str, num_words: int) -> tuple[str, ...]:
    """Valid names in a table of tokens; its content is not trusted."""
    named = getattr(generation_config, table, None)
    if getattr(generation_config, "is_multilingual", False) is not True or not isinstance(named, dict):
        return ()
    return tuple(
        name
        for name, number in named.items()
        if isinstance(name, str) and isinstance(number, int) and 0 <= number < num_words
    )
