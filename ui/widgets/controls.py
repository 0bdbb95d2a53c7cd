"""Controls whose state is the URL: a link shows the same view to someone else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.streamlit_internals.types import TabContainer
from ui.text.markdown import escape
from ui.text.numbers import localised, series
from ui.text.words import Words, languages, load_words
from ui.widgets.page_file import MOST_IN_ADDRESS
from ui.widgets.query_param import Names, in_address
from ui.widgets.sharing import Sharing, opened_text

Option = TypeVar("Option")
Value = TypeVar("Value")


class Controls:
    """A chapter's widgets. Each has the name its label has in the words, and PREFIX-NAME in the URL.

    The prefix is the chapter's initials, so that chapters do not answer to each other's parameters.
    """

    def __init__(self, words: Words, sharing: Sharing | None = None) -> None:
        """
        Args:
            words: with the labels.
            sharing: is told of a text that is too long for the address.
        """
        self.words, self._sharing = words, sharing
        self._notes: DeltaGenerator | None = None  # where notes about the address go, if not below their control

    def key(self, name: str) -> str:
        return f"{self.words.prefix}-{name}"

    def slider(self, name: str, low: float, high: float, default: float, step: float | None = None) -> float:
        """A number on a slider; whole where low is whole."""
        return self._bound(
            name,
            lambda key, label: st.slider(label, low, high, default, step, key=key, bind="query-params"),
            allowed=(low, high),
        )

    def number(self, name: str, low: float, high: float, default: float, step: float | None = None) -> float:
        """A number to type; whole where low is whole."""

        def widget(key: str, label: str) -> float:
            if _infinite(st.query_params.get(key)):  # Streamlit fails at one where a whole number is wanted
                del st.query_params[key]
                return st.number_input(label, low, high, default, step, key=key)
            return st.number_input(label, low, high, default, step, key=key, bind="query-params")

        return self._bound(name, widget, allowed=(low, high))

    def clamp(self, name: str, most: float) -> None:
        """A number chosen under a larger limit moves to the edge of a smaller one; to be said before it is drawn."""
        if st.session_state.get(self.key(name), most) > most:
            st.session_state[self.key(name)] = most

    def select_slider(self, name: str, options: Sequence[Option], default: Option) -> Option:
        """One of several values in order, on a slider that stops at nothing else."""
        return self._chosen(
            name,
            options,
            default,
            lambda key, label, value: st.select_slider(label, options, value, format_func=self._option, key=key),
        )

    @contextmanager
    def more(self) -> Iterator[None]:
        """Controls that few need, behind one button; notes about their address stand below it, not inside."""
        with st.popover(load_words("common")("more"), icon=":material/tune:"):
            inside = st.container()
        self._notes = st.container()
        with inside:
            yield
        self._notes = None

    def choice(self, name: str, options: Sequence[Option], default: Option) -> Option:
        """One of a few, side by side. Options are labelled by the words `option.OPTION` where there are any."""
        return self._chosen(
            name,
            options,
            default,
            lambda key, label, value: st.segmented_control(
                label, options, default=value, required=True, format_func=self._option, key=key
            ),
        )

    def select(self, name: str, options: Sequence[Option], default: Option) -> Option:
        """One of many, in a list that can be searched."""
        return self._chosen(
            name,
            options,
            default,
            lambda key, label, value: st.selectbox(
                label,
                options,
                0 if value is None else list(options).index(value),
                format_func=self._option,
                key=key,
            ),
        )

    def multiselect(
        self, name: str, options: Sequence[Option], default: Sequence[Option], most: int | None = None
    ) -> list[Option]:
        """Any number of options, or up to `most`, in a list that can be searched."""
        known = self._known(options)

        def read(asked: Names) -> list[Option] | None:
            names = [each.casefold() for each in asked if each]
            fits = all(each in known for each in names) and len(names) <= (most or len(names))
            return [known[each] for each in names] if fits else None

        return self._addressed(
            name,
            list(default),
            read,
            lambda chosen: tuple(map(str, chosen)) or ("",),
            lambda chosen: all(each in options for each in chosen),
            lambda key, label, value: st.multiselect(
                label, options, value, max_selections=most, format_func=self._option, key=key
            ),
        )

    def tabs(self, options: Sequence[str]) -> Sequence[TabContainer]:
        """A tab for each option, the first one open; only one's content need be drawn. Without a label: they speak."""
        known = {name: self._option(option) for name, option in self._known(options).items()}
        names = {self._option(option): option for option in options}
        tabs: Sequence[TabContainer] = ()

        def draw(begin: str | None) -> str:
            nonlocal tabs
            tabs = st.tabs(list(names), default=begin, key=key, on_change="rerun")
            return next(label for label, tab in zip(names, tabs, strict=True) if tab.open)

        key = self.key("section")
        first = next(iter(names))
        in_address(
            key,
            first,
            lambda asked: known.get(asked[-1].casefold()),
            lambda label: (names[label],),
            names.__contains__,
            draw,
        )
        return tabs

    def _chosen(
        self,
        name: str,
        options: Sequence[Option],
        default: Option,
        widget: Callable[[str, str, Option | None], Option | None],
    ) -> Option:
        known = self._known(options)

        def draw(key: str, label: str, begin: Option | None) -> Option:
            value = widget(key, label, begin)
            return default if value is None else value

        return self._addressed(
            name,
            default,
            lambda asked: known.get(asked[-1].casefold()),
            lambda chosen: (str(chosen),),
            lambda chosen: chosen in options,
            draw,
        )

    def _known(self, options: Sequence[Option]) -> dict[str, Option]:
        """Options by their names and by their labels, former ones too, in any language."""
        known: dict[str, Option] = {}
        for language in languages():
            words = load_words(self.words.chapter, language)
            former = words.group("former-option")
            known |= {former[str(option)].casefold(): option for option in options if str(option) in former}
            known |= {_label(words, option).casefold(): option for option in options}
        return known | {str(option).casefold(): option for option in options}

    def _addressed(
        self,
        name: str,
        default: Value,
        read: Callable[[Names], Value | None],
        write: Callable[[Value], Names],
        offered: Callable[[Value], bool],
        widget: Callable[[str, str, Value | None], Value],
    ) -> Value:
        key, label = self.key(name), self.words.label(name)
        asked = st.query_params.get(key, "")
        value, refused = in_address(key, default, read, write, offered, lambda begin: widget(key, label, begin))
        if refused:
            self._say_instead("fallback", label, asked, value)
        return value

    def toggle(self, name: str, default: bool = False) -> bool:
        return self._bound(name, lambda key, label: st.toggle(label, default, key=key, bind="query-params"))

    def text(
        self,
        name: str,
        default: str,
        max_chars: int | None = None,
        placeholder: str | None = None,
        on_change: Callable[[], None] | None = None,
    ) -> str:
        """One line of text. No max_chars means the page says itself what is too long, and loses none of it."""
        own: dict[str, Any] = {"max_chars": max_chars, "placeholder": placeholder, "on_change": on_change}
        return self._typed(name, lambda label, **bound: st.text_input(label, default, **own, **bound))

    def text_area(self, name: str, default: str, height: int = 160, on_change: Callable[[], None] | None = None) -> str:
        """Several lines of text; the page says itself what it cannot read, and loses none of it."""
        if self._sharing is not None:
            self._sharing.offer_to_open()
        return self._typed(
            name, lambda label, **bound: st.text_area(label, default, height, on_change=on_change, **bound)
        )

    def _typed(self, name: str, widget: Callable[..., str | None]) -> str:
        """What is too long for an address stays out of it, and a note says so; a file can hold it."""
        key, unlinked = self.key(name), f"{self.key(name)}-unlinked"
        opened = opened_text(key)
        if opened is not None:
            st.session_state[key] = opened
        if len(st.session_state.get(key) or "") <= MOST_IN_ADDRESS:
            if st.session_state.pop(unlinked, False) and key in st.session_state:  # it was too long a moment ago
                st.query_params[key] = st.session_state[key]
            return self._bound(name, lambda key, label: widget(label, key=key, bind="query-params")) or ""
        label = self.words.label(name)
        text = widget(label, key=key) or ""  # no longer bound: Streamlit takes it out of the address
        if key in st.query_params:  # where it was never bound
            del st.query_params[key]
        st.session_state[unlinked] = True
        (self._notes or st).caption(load_words("common")("unlinked", label=label))
        if self._sharing is not None:
            self._sharing.say_unlinked(key, label, text)
        return text

    def _option(self, option: object) -> str:
        if isinstance(option, list):
            return series([_label(self.words, each) for each in option], self.words.language)
        return _label(self.words, option)

    def _bound(
        self, name: str, widget: Callable[[str, str], Option], allowed: tuple[float, float] | None = None
    ) -> Option:
        """Draw the widget; where the URL asked for something it cannot show, say what it shows instead.

        `allowed` is the smallest and largest number there may be, to be told as well.
        """
        key = self.key(name)
        label = self.words.label(name)
        asked = st.query_params.get(key)
        if allowed is not None:
            _forget_impossible(key, *allowed)
        value = widget(key, label)
        cut = asked is not None and _is_cut(asked, value)
        gone = asked is not None and key not in st.query_params and not _same(asked, value, self._option(value))
        if asked is not None and (cut or gone):
            limits = {} if allowed is None else {"low": f"{allowed[0]:,}", "high": f"{allowed[1]:,}"}
            note = "fallback" if allowed is None else "fallback-whole" if cut else "fallback-range"
            self._say_instead(note, label, asked, value, **limits)
        return value

    def _say_instead(self, note: str, label: str, asked: str, value: object, **limits: str) -> None:
        told = {"label": label, "asked": escape(asked[:40]), "shown": self._option(value), **limits}
        (self._notes or st).caption(load_words("common")(note, **told))


def _label(words: Words, option: object) -> str:
    """What an option is called."""
    name = f"option.{option}"
    if words.has(name):
        return words(name)
    return localised(str(option), words.language) if isinstance(option, float) else str(option)


def _forget_impossible(key: str, low: float, high: float) -> None:
    """Drop a number held from before another control moved the limits: Streamlit raises an error at it."""
    held = st.session_state.get(key)
    if isinstance(held, int | float) and not low <= held <= high:
        del st.session_state[key]


def _infinite(asked: str | None) -> bool:
    try:
        return asked is not None and math.isinf(float(asked))
    except ValueError:
        return False


def _is_cut(asked: str, value: object) -> bool:
    """Whether a URL parameter was a number between whole ones, which Streamlit cuts to one where a whole is wanted."""
    try:
        number = float(asked)
    except ValueError:
        return False
    return type(value) is int and math.isfinite(number) and not number.is_integer()


def _same(asked: str, value: object, shown: str) -> bool:
    """Whether a URL parameter that Streamlit dropped said the default, rather than something impossible."""
    if asked.casefold() in {str(value).casefold(), shown.casefold()}:
        return True
    try:
        return isinstance(value, int | float) and float(asked) == value
    except ValueError:
        return False
