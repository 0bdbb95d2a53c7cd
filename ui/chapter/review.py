"""Questions asked again later: two on each chapter, at its end, at the start of the third one after it, and on a page.

What a reader knows stays in the browser; assets/components/review/main.js says when a question is due.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ui.chapter.contents import all_chapters
from ui.text.words import Words, load_words
from ui.widgets.component import component
from ui.widgets.predictions import read_prediction

LATER = 3
"""How many chapters later the questions on a chapter are asked again."""
NUMBERS = ("1", "2")

_IDEA = re.compile(r"\*\*(.+?)[.。]?\*\*\s*")
_mount: Callable[..., Any] = component("review")


def chapter_to_repeat(chapter: str) -> str | None:
    """Return the chapter whose questions are asked at the start of this one; None for the first ones."""
    order = all_chapters()[1:]
    place = order.index(chapter) - LATER if chapter in order else -1
    return order[place] if place >= 0 else None


def draw_review(chapters: Sequence[str], mode: Literal["questions", "overview"], key: str) -> None:
    """Draw the questions on these chapters, or an overview of which ideas are known and which are due."""
    words = load_words("review")
    data = {
        "mode": mode,
        "language": words.language,
        "words": words.group("view"),
        "chapters": [
            {
                "name": name,
                "title": load_words(name).menu,
                "questions": [_question(words, f"{name}.{number}") for number in NUMBERS],
            }
            for name in chapters
        ],
    }
    _mount(key=key, data=json.dumps(data).encode())


def _question(words: Words, name: str) -> dict[str, Any]:
    """Return a question for the browser: its idea, its text and its answers."""
    prediction = read_prediction(words(name))
    return {
        "id": name,
        "idea": idea_of(prediction.question),
        "text": _IDEA.sub("", prediction.question, count=1),
        "answers": [
            {"right": answer.mark == "x", "text": answer.text, "reply": answer.reply} for answer in prediction.answers
        ],
    }


def idea_of(question: str) -> str:
    """Return the idea that a question is about: the bold words that it begins with.

    Raises:
        ValueError: if it begins with none.
    """
    found = _IDEA.match(question)
    if found is None:
        raise ValueError(f"a question begins with its idea in bold, got {question!r}")
    return found[1]
