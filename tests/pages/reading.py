"""What a page says and draws, read by its tests."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from ui.text.words import Words
from ui.widgets.predictions import read_prediction
from viz_core.view.components import unframe


def decode_chart(data: bytes) -> dict[str, Any]:
    """Return the arguments of `encode_chart`, with numpy arrays; ValueError if the bytes are truncated."""
    header, start = unframe(data)

    def read(value: Any) -> Any:
        if isinstance(value, list):
            return [read(each) for each in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"dtype", "at", "shape"}:
            count = math.prod(value["shape"])
            return np.frombuffer(data, value["dtype"], count, start + value["at"]).reshape(value["shape"])
        return {name: read(each) for name, each in value.items()}

    return {name: read(value) for name, value in header.items()}


# A badge: a mark, what must be true, a dot, and the number measured with words around it.
_BADGE = re.compile(r":\w+\[:material/(check|close):\] (.*) · [^`]*`([^`]*)`[^`]*")

NUMBER = r"-?[\d.,]*\d(?: × 10⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+|(?<=10)⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
"""A number as pages write it, as a pattern."""


def texts(app: AppTest) -> str:
    """All it says, without the backslashes that keep Markdown from reading more into it."""
    elements = [*app.markdown, *app.caption, *app.warning, *app.error, *app.info]
    return "\n".join(element.value for element in elements).replace("\\", "")


def claims(app: AppTest) -> list[str]:
    """The claims, each with its badge: green where it holds."""
    return [m.value for m in app.markdown if m.value.startswith((":green[", ":red["))]


def marks(app: AppTest) -> dict[str, tuple[bool, str]]:
    """What each claim says: whether it holds, and its residual."""
    found = (_BADGE.fullmatch(element.value) for element in app.markdown)
    return {mark[2]: (mark[1] == "check", mark[3]) for mark in found if mark}


def badges(app: AppTest) -> dict[str, bool]:
    """What each claim says, and whether it holds."""
    return {claim: holds for claim, (holds, _) in marks(app).items()}


def findings(app: AppTest) -> list[str]:
    """Its sentences that data decide, without the backslashes that keep Markdown from reading more into them."""
    mark = ":material/fact_check: "
    captions = (caption.value for caption in app.caption)
    return [each.removeprefix(mark).replace("\\", "") for each in captions if each.startswith(mark)]


def components(app: AppTest, name: str) -> list[Any]:
    """The components of this name, in reading order."""
    found = (component.proto for component in app.get("bidi_component"))
    return [proto for proto in found if proto.component_name == name]


def figure_names(app: AppTest) -> list[str]:
    """The names of the figures drawn, as in `alt.NAME` of the words, in reading order (repeats included)."""
    return [_name(proto.id, "figure") for proto in components(app, "chart")]


def elements(block: Any, skips: Callable[[Any], bool] = lambda _child: False) -> Iterator[Any]:
    """Everything in a block of a page, in reading order, without what is skipped and all that is in it."""
    for child in getattr(block, "children", {}).values():
        if not skips(child):
            yield child
            yield from elements(child, skips)


def key_of(child: Any) -> str:
    """The id of an element or a container, which ends with its key."""
    return str(getattr(getattr(child, "proto", None), "id", ""))


def claim_names(app: AppTest, failing: bool = False) -> list[str]:
    """The names of the claims shown, or of those that fail, as in `claim.NAME` of the words, in reading order."""
    keys = [key for key in map(key_of, elements(app.main)) if "-claim-" in key]
    return [_name(key, "claim") for key in keys if not failing or key.endswith("-fails")]


def revealed(app: AppTest, words: Words) -> dict[str, set[tuple[str, ...]]]:
    """What is given away by what one reads without opening anything: the essentials but for questions and folds."""

    def folded(child: Any) -> bool:
        is_closed = child.type == "expander" and not child.proto.expanded
        return is_closed or re.search("-(exercise-.*|deeper)$", key_of(child)) is not None

    found = (child for child in elements(app.main, folded) if child.type in ("markdown", "caption", "warning", "info"))
    return given_away(words, [line for child in found for line in child.value.splitlines()])


_SMALL = frozenset(
    "and are for from how its not same that the was were what with com das dos mais não por que uma".split()
)


def _parts(text: str) -> set[tuple[str, ...]]:
    """Runs of three words but the smallest, of eight Chinese characters, and numbers but of labels ("16: A = ?")."""
    text = re.sub(r"(?<=\d)[.,](?=\d)", "", text.casefold())
    characters = re.findall("[\u4e00-\u9fff]", text)
    words = [word for word in re.findall(r"[^\W\d_\u4e00-\u9fff]{3,}", text) if word not in _SMALL]
    runs = ((each[i : i + n]) for each, n in ((words, 3), (characters, 8)) for i in range(len(each) - n + 1))
    return {tuple(run) for run in runs} | {(number,) for number in re.findall(r"\d{2,}(?!: \w = \?)", text)}


def given_away(words: Words, visible: Iterable[str]) -> dict[str, set[tuple[str, ...]]]:
    """What these texts of a page say of the answer to a question, and of its reason unless the book asks.

    What the question says is no secret, nor is an answer in sight beside all others.
    """
    visible, found = [text.casefold().strip() for text in visible], {}
    seen = {(text,) for text in visible}.union(*map(_parts, visible))
    assert seen, "nothing is in sight"
    for name, text in words.group("exercise").items():
        prediction = read_prediction(text)
        right = next(each.text for each in prediction.answers if each.mark == "x")
        answers = {
            text: (re.sub("[“”「」*]", "", text).casefold(),) for text in (each.text for each in prediction.answers)
        }
        secret = {answers[right]} | _parts(right)
        if not prediction.question.startswith("["):
            secret |= _parts(re.sub(r"(?<![\d.,])\d+(?![\d.,]*[\d%])", " ", prediction.why))  # counts are no measures
        alike = set(answers.values()) if seen.issuperset(answers.values()) else set()
        if stated := (secret & seen) - _parts(prediction.question) - alike:
            found[name] = stated
    return found


def _name(key: str, kind: str) -> str:
    """The name in the key of an element, without the number by which a page tells several of one name apart."""
    return re.sub(r"(-\d+)?(-fails)?$", "", key.split(f"-{kind}-", 1)[1])


def places(app: AppTest) -> dict[str, Any]:
    """What the browser gets of its first drawing whose tokens have places."""
    content: dict[str, Any] = json.loads(components(app, "places")[0].bytes)
    return content


def figures(app: AppTest, name: str = "") -> list[dict[str, Any]]:
    """Its figures, or those of this name: what plotly.js is given and `about` each, numbers as arrays."""
    pattern = re.compile(rf"-figure-{name}(-\d+)?$" if name else "")
    return [decode_chart(proto.bytes) for proto in components(app, "chart") if pattern.search(proto.id)]


def alts(app: AppTest) -> list[str]:
    """What each of its figures is for who cannot see it."""
    return [figure["about"]["alt"] for figure in figures(app)]


def array(numbers: Any) -> np.ndarray:
    """An array or a list, whose gaps are None."""
    return np.array(numbers, dtype=float)


def figures_alt(app: AppTest) -> str:
    """The same in one text."""
    return "\n".join(alts(app))


def charts(app: AppTest, name: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """The figures of this name: what each is for who cannot see it, and its traces, their numbers as arrays."""
    return [(figure["about"]["alt"], figure["data"]) for figure in figures(app, name)]


def drawn(app: AppTest, name: str) -> list[dict[str, Any]]:
    """The traces of the figure of this name."""
    return charts(app, name)[0][1]


def one_line(app: AppTest) -> str:
    """All it says in one line, with the minus that a keyboard has."""
    return " ".join(texts(app).replace("−", "-").split())


def printed(app: AppTest) -> list[tuple[str, str]]:
    """The cards of what sources print: what each says is there, and whether ours agrees, differs or is another run."""
    marks = {"check": "agrees", "difference": "differs", "casino": "run"}
    card = re.compile(r"^[^`\n]*: `(.*)`  \n(?::gray.*\n)?.*:material/(\w+):")
    cards = (card.search(markdown.value) for markdown in app.markdown)
    return [(found[1], marks[found[2]]) for found in cards if found]


def number(app: AppTest, before: str) -> float:
    """The number that stands after these words."""
    found = re.search(rf"{re.escape(before)} ?({NUMBER})", one_line(app))
    assert found, (before, one_line(app))
    return value_of(found[1])


def value_of(text: str) -> float:
    """The value of a number as pages write it: "1,234.5" or "1.2 × 10⁻⁷"."""
    digits = text.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", ","))
    return float(re.sub(r"^10(?=-)", "1e", digits.replace(" × 10", "e")))


def finding(app: AppTest, holds: str, fails: str) -> bool:
    """Whether it says the one sentence or the other; it must say one of the two."""
    found = " ".join(" ".join(findings(app)).split())
    assert (holds in found) != (fails in found), found
    return holds in found


def stands(app: AppTest, *but: str) -> None:
    """What no page may lack: badges that hold, but those that say one of these words; no gap in a sentence."""
    missed = [claim for claim, holds in badges(app).items() if not holds and not any(words in claim for words in but)]
    assert not missed, missed
    plain = re.sub(r"\$\$.*?\$\$|\$.*?\$", "", texts(app), flags=re.DOTALL)
    gaps = re.findall(r"\{\w+\}|\bnan\b|(?<!\| )\bNone\b", plain)  # a card has settings that are None
    assert not gaps, gaps


def heatmap(app: AppTest, place: int = 0) -> tuple[dict[str, Any], np.ndarray]:
    """Header and pixels of a heatmap on the page."""
    data = components(app, "heatmap")[place].bytes
    header, start = unframe(data)
    size = header["rows"] * header["columns"]
    pixels = np.frombuffer(data, np.uint8, size, start + header["pixels"])
    return header, pixels.reshape(header["rows"], header["columns"])
