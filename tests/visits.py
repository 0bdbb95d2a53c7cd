"""Pages opened once a session and then only read, and the cases that each chapter's chapter.toml gives its tests.

A chapter is a folder of pages/; its tests find it, and its cases, without a list here.
"""

import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Never

import pytest
from huggingface_hub import constants
from streamlit import config
from streamlit.testing.v1 import AppTest

from tests import app_test  # noqa: F401
from ui.chapter.contents import ROOT, all_chapters, page_file
from ui.streamlit_internals.front_end import follow_link
from ui.text.words import SHARED, Words

Params = Mapping[str, str]


def open_chapter(chapter: str, **query_params: str) -> AppTest:
    """Open the app with one chapter and run it once; an exception on the page fails.

    All its sections are open, as with the switch "Open all", unless `open-all` is given.
    """
    app = AppTest.from_file(str(ROOT / "ui" / "app" / "main.py"), default_timeout=120)
    for name, value in (({} if chapter == "home" else {"open-all": "true"}) | query_params).items():
        app.query_params[name] = value
    if chapter != "home":
        follow_link(app, chapter)
    config.set_option("client.showErrorDetails", "full")  # a page that fails says why
    app.run()
    assert not app.exception, [error.message for error in app.exception]
    return app


class Visits:
    """visits("transformer", **query_params): that page, opened once with what ships and without a network.

    Attributes:
        words: by page and parameters, file and name of all words that the page requested.
    """

    def __init__(self) -> None:
        self.words: dict[tuple[str, frozenset[tuple[str, str]]], set[tuple[str, str]]] = defaultdict(set)
        self._opened: dict[tuple[str, frozenset[tuple[str, str]]], AppTest] = {}

    def __call__(self, chapter: str, **query_params: str) -> AppTest:
        key = chapter, frozenset(query_params.items())
        if key not in self._opened:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(constants, "HF_HUB_OFFLINE", True)
                patch.delenv("ATLAS_MODELS", raising=False)
                for method in ("__call__", "label", "group"):
                    patch.setattr(Words, method, _recording(getattr(Words, method), self.words[key]))
                app = open_chapter(chapter, **query_params)
            app.run = app._run = _refuse  # type: ignore[method-assign,assignment]
            self._opened[key] = app
        return self._opened[key]


def _recording(method: Callable[..., Any], found: set[tuple[str, str]]) -> Callable[..., Any]:
    def recording(words: Words, name: str, /, **values: object) -> Any:
        answer = method(words, name, **values)
        names = [f"{name}.{each}" for each in answer] if isinstance(answer, dict) else [name]
        found.update((file, each) for each in names for file in (words.chapter, SHARED))
        return answer

    return recording


def _refuse(*_: object, **__: object) -> Never:
    raise AssertionError("a visit is read by many tests; use open_page to change a page")


@dataclass(frozen=True)
class Hostile:
    """An address that asks for what cannot be shown.

    Attributes:
        ask: parameters that are each named in a note; those of the attention view share one.
        at: where in the chapter.
        silent: parameters that are dropped without a note.
    """

    ask: Params = field(default_factory=dict)
    at: Params = field(default_factory=dict)
    silent: Params = field(default_factory=dict)


@dataclass(frozen=True)
class Break:
    """The settings of one control that breaks a formula.

    Attributes:
        fails: by setting, the claims that fail with it, and no others do.
        part: the control is `break-PART`; "" where it is `break`.
        at: where in the chapter.
    """

    fails: dict[str, list[str]]
    part: str = ""
    at: Params = field(default_factory=dict)


@dataclass(frozen=True)
class Cases:
    """`[cases]` of a chapter.toml.

    Attributes:
        hostile: addresses that ask for what cannot be shown.
        breaks: the controls that break a formula.
        other_broken: claims that other tests of the chapter break.
    """

    hostile: tuple[Hostile, ...]
    breaks: tuple[Break, ...]
    other_broken: frozenset[str]


def cases(chapter: str) -> Cases:
    """Return what a chapter.toml gives the contract tests.

    Raises:
        KeyError, TypeError: if a case is missing or has an unknown name.
    """
    path = page_file(chapter).with_name("chapter.toml")
    values = tomllib.loads(path.read_text(encoding="utf-8"))["cases"]
    unknown = values.keys() - {"hostile", "break", "broken-elsewhere"}
    if unknown:
        raise TypeError(f"{path}: unknown cases {sorted(unknown)}")
    return Cases(
        tuple(Hostile(**each) for each in values["hostile"]),
        tuple(Break(**each) for each in values.get("break", ())),
        frozenset(values.get("broken-elsewhere", ())),
    )


CHAPTERS = all_chapters()[1:]
