"""Items of the trial, their key, and the page on which participants answer them.

`python docs/teach/trial/trial.py` writes form.html from form-template.html and items.json. The page has no key.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LANGUAGES = ("en", "pt-BR", "zh-TW")
FORMS = ("A", "B", "C")
CONDITIONS = ("read", "explore", "predict")


@dataclass(frozen=True)
class Item:
    """A question of one form in one language.

    Attributes:
        answers: as they are shown, in order.
        misconceptions: what each answer shows; None at the right one.
    """

    concept: str
    form: str
    question: str
    answers: tuple[str, ...]
    misconceptions: tuple[str | None, ...]

    @property
    def right(self) -> int:
        """The place of the right answer, from 0."""
        return self.misconceptions.index(None)


def contents() -> dict[str, Any]:
    """The items and misconceptions of items.json."""
    return json.loads((HERE / "items.json").read_text("utf-8"))


def misconceptions(language: str = "en") -> dict[str, str]:
    """What each misconception says, by its name in items.json."""
    return {name: texts[language] for name, texts in contents()["misconceptions"].items()}


def sentence(name: str, language: str, /, **values: object) -> str:
    """A sentence that the analysis prints, with the language's decimal sign."""
    return _in(_analysis()["sentences"][name][language].format(**values), language)


def notebook(language: str) -> str:
    """The analysis with its text in a language: the cells of analysis.ipynb, and what analysis.json says instead."""
    book = json.loads((HERE / "analysis.ipynb").read_text("utf-8"))
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = [line.replace('LANGUAGE = "en"', f'LANGUAGE = "{language}"') for line in cell["source"]]
        elif language != "en":
            cell["source"] = _analysis()["cells"][cell["id"]][language].splitlines(keepends=True)
    return json.dumps(book, ensure_ascii=False, indent=1) + "\n"


def _analysis() -> dict[str, Any]:
    """The words of the analysis in other languages."""
    return json.loads((HERE / "analysis.json").read_text("utf-8"))


def items(form: str, language: str = "en") -> list[Item]:
    """Return the items of a form; the place of the right answer depends on form and concept, without a pattern.

    Raises:
        ValueError: if there is no such form or language.
    """
    if form not in FORMS or language not in LANGUAGES:
        raise ValueError(f"forms are {FORMS} and languages {LANGUAGES}, got {form!r} and {language!r}")
    found = []
    for concept, each in contents()["concepts"].items():
        values = {name: _in(value, language) for name, value in each["forms"][form].items()}
        options = [(None, each["right"]), *each["distractors"].items()]
        turn = sha256(f"{concept} {form}".encode()).digest()[0] % len(options)
        options = options[turn:] + options[:turn]
        answers = tuple(_in(text, language).format(**values) for _, text in options)
        question = _in(each["question"], language).format(**values)
        found.append(Item(concept, form, question, answers, tuple(name for name, _ in options)))
    return found


def key() -> dict[tuple[str, str], tuple[str | None, ...]]:
    """By form and concept: the misconception that each answer shows, None at the right one."""
    return {(form, each.concept): each.misconceptions for form in FORMS for each in items(form)}


def page() -> str:
    """The page for participants: every form in every language, without the key."""
    shown = {
        language: {
            form: [{"item": each.concept, "question": each.question, "answers": each.answers} for each in found]
            for form, found in ((form, items(form, language)) for form in FORMS)
        }
        for language in LANGUAGES
    }
    data = json.dumps(shown, ensure_ascii=False, indent=0).replace("<", "\\u003c")
    return (HERE / "form-template.html").read_text("utf-8").replace('"ITEMS"', data)


def _in(text: str | dict[str, str], language: str) -> str:
    """Return a text in a language; one that is the same in all languages has the language's decimal sign."""
    if isinstance(text, dict):
        return text[language]
    return re.sub(r"(?<=\d)\.(?=\d)", ",", text) if language == "pt-BR" else text


if __name__ == "__main__":
    (HERE / "form.html").write_text(page(), "utf-8")
