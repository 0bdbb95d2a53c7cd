"""Controls whose state is in the URL: a link shows the same view to someone else."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.streamlit_internals.script_run import TabContainer, in_browser, is_history_navigation
from ui.text.markdown import escape, join_sentences
from ui.text.numbers import localised, series
from ui.text.words import Words, languages, load_words
from ui.widgets.query_param import Names, discard_out_of_range, in_address, is_infinite, is_same, is_truncated
from ui.widgets.sidebar import Sharing

Option = TypeVar("Option")
Value = TypeVar("Value")
_MAX_IN_URL = 4000  # characters; servers refuse URLs of a few times this length


class Menu(NamedTuple):
    """A popover of controls.

    Attributes:
        block: opens a block in it, for `with`, as often as needed.
        is_drawn: whether its controls are to be drawn; else all have their defaults.
    """

    block: Callable[[], AbstractContextManager[None]]
    is_drawn: bool


class Controls:
    """A chapter's widgets. Each has the name of its label in the words, and the query parameter PREFIX-NAME.

    The prefix is the chapter's initials, so that chapters do not read each other's parameters.
    """

    def __init__(self, words: Words, sharing: Sharing | None = None) -> None:
        """
        Args:
            words: with the labels.
            sharing: says which texts are too long for the URL.
        """
        self.words, self._sharing = words, sharing
        self.common = load_words("common", words.language)
        self._notes: DeltaGenerator | None = None  # where notes about the URL go, if not below their control

    def key(self, name: str) -> str:
        """Return the key of a widget, which also is its query parameter."""
        return f"{self.words.prefix}-{name}"

    def slider(self, name: str, low: float, high: float, default: float, step: float | None = None) -> float:
        """Draw a slider; return its number, an integer if `low` is one."""
        widget = partial(st.slider, min_value=low, max_value=high, value=default, step=step, format="localized")
        return self._bound(name, widget, allowed=(low, high))

    def number(self, name: str, low: float, high: float, default: float, step: float | None = None) -> float:
        """Draw a number input; return its number, an integer if `low` is one."""
        widget: Callable[..., float] = partial(st.number_input, min_value=low, max_value=high, value=default, step=step)
        if is_infinite(st.query_params.get(self.key(name))):  # Streamlit fails at infinity where it expects an integer
            widget = partial(_without_binding, widget)
        return self._bound(name, widget, allowed=(low, high))

    def clamp(self, name: str, maximum: float) -> None:
        """Reduce a control's number to a maximum that became smaller; call it before the control is drawn."""
        if st.session_state.get(self.key(name), maximum) > maximum:
            st.session_state[self.key(name)] = maximum

    def select_slider(self, name: str, options: Sequence[Option], default: Option) -> Option:
        """Draw a slider over a sequence of values; return the chosen one."""
        return self._chosen(
            name,
            options,
            default,
            lambda key, label, value: st.select_slider(label, options, value, format_func=self.option, key=key),
        )

    @contextmanager
    def more(self) -> Iterator[None]:
        """Draw a popover for advanced controls; notes about the URL are below it, not inside."""
        with self.menu(self.common("more"), ":material/tune:").block():
            yield

    def menu(self, label: str, icon: str, defaults: Mapping[str, object] | None = None) -> Menu:
        """Draw a popover.

        Args:
            defaults: values of all its controls, if those are drawn only while it is open or another value is set.
        """
        lazy = defaults is not None and in_browser()
        popover = st.popover(
            label, icon=icon, key=self.key("menu") if lazy else None, on_change="rerun" if lazy else "ignore"
        )
        is_drawn = not lazy or bool(popover.open)
        for name, default in (defaults or {}).items():
            key = self.key(name)
            is_drawn |= key in st.query_params or st.session_state.get(key, default) != default
        notes = st.container() if is_drawn else None

        @contextmanager
        def block() -> Iterator[None]:
            self._notes = notes
            with popover:
                yield
            self._notes = None

        return Menu(block, is_drawn)

    def choice(
        self, name: str, options: Sequence[Option], default: Option, labels: Mapping[Option, str] | None = None
    ) -> Option:
        """Draw a few options side by side; return the chosen one.

        Args:
            labels: of the options; `option.OPTION` of the words unless given.
        """
        named = self.option if labels is None else labels.__getitem__
        return self._chosen(
            name,
            options,
            default,
            lambda key, label, value: st.segmented_control(
                label, options, default=value, required=True, format_func=named, key=key
            ),
            named,
        )

    def select(
        self, name: str, options: Sequence[Option], default: Option, labels: Callable[[Option], str] | None = None
    ) -> Option:
        """Draw a list of options that can be searched; return the chosen one.

        Args:
            labels: gives the label of an option; `option.OPTION` of the words unless given.
        """
        return self._chosen(
            name,
            options,
            default,
            lambda key, label, value: st.selectbox(
                label,
                options,
                0 if value is None else list(options).index(value),
                format_func=labels or self.option,
                key=key,
                placeholder=self.common("choose"),
            ),
            labels,
        )

    def multiselect(
        self,
        name: str,
        options: Sequence[Option],
        default: Sequence[Option],
        most: int | None = None,
        labels: Callable[[Option], str] | None = None,
    ) -> list[Option]:
        """Draw a list of options; return the chosen ones, at most `most`.

        Args:
            labels: gives the label of an option; `option.OPTION` of the words unless given.
        """

        def read(requested: Names) -> list[Option] | None:
            known = self._known(options)
            names = [each.casefold() for each in requested if each]
            valid = all(each in known for each in names) and len(names) <= (most or len(names))
            return [known[each] for each in names] if valid else None

        return self._addressed(
            name,
            list(default),
            read,
            lambda chosen: tuple(map(str, chosen)) or ("",),
            lambda chosen: all(each in options for each in chosen),
            lambda key, label, value: st.multiselect(
                label,
                options,
                value,
                max_selections=most,
                format_func=labels or self.option,
                key=key,
                placeholder=self.common("choose"),  # Streamlit would say it in English
            ),
        )

    def tabs(self, options: Sequence[str]) -> Sequence[TabContainer]:
        """Return a tab for each option, the first one open; only the open one's content need be drawn."""
        known = {name: self.option(option) for name, option in self._known(options).items()}
        names = {self.option(option): option for option in options}
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
            lambda requested: known.get(requested[-1].casefold()),
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
        labels: Callable[[Option], str] | None = None,
    ) -> Option:
        def draw(key: str, label: str, begin: Option | None) -> Option:
            value = widget(key, label, begin)
            return default if value is None else value

        return self._addressed(
            name,
            default,
            lambda requested: self._known(options).get(requested[-1].casefold()),
            lambda chosen: (str(chosen),),
            options.__contains__,
            draw,
            labels,
        )

    def _known(self, options: Sequence[Option]) -> dict[str, Option]:
        """Return the options by their names and by their labels in every language."""
        known: dict[str, Option] = {}
        for language in languages():
            words = load_words(self.words.chapter, language)
            common = load_words("common", language)
            known |= {_label(words, common, option).casefold(): option for option in options}
        return known | {str(option).casefold(): option for option in options}

    def _addressed(
        self,
        name: str,
        default: Value,
        read: Callable[[Names], Value | None],
        write: Callable[[Value], Names],
        offered: Callable[[Value], bool],
        widget: Callable[[str, str, Value | None], Value],
        labels: Callable[[Value], str] | None = None,
    ) -> Value:
        key, label = self.key(name), self.words.label(name)
        requested = st.query_params.get(key, "")
        value, refused = in_address(key, default, read, write, offered, lambda begin: widget(key, label, begin))
        if refused:
            self._report_fallback(label, requested, (labels or self.option)(value))
        return value

    def toggle(self, name: str, default: bool = False) -> bool:
        """Draw a toggle; return whether it is on."""
        return self._bound(name, partial(st.toggle, value=default))

    def text(
        self,
        name: str,
        default: str,
        max_chars: int | None = None,
        placeholder: str | None = None,
        on_change: Callable[[], None] | None = None,
        *,
        height: int = 0,
    ) -> str:
        """Draw a text input; return its text. Text too long for the URL is left out of it, with a note.

        Args:
            max_chars: without it the page itself reports text that is too long.
            height: of a text area, in pixels; one line unless given.
        """
        options: dict[str, Any] = {"max_chars": max_chars, "placeholder": placeholder, "on_change": on_change}
        widget: Callable[..., str | None]
        widget = partial(st.text_area, height=height) if height else st.text_input
        widget = partial(widget, value=default, **options)
        key, unlinked = self.key(name), f"{self.key(name)}-unlinked"
        if len(st.session_state.get(key) or "") <= _MAX_IN_URL:
            if st.session_state.pop(unlinked, False) and key in st.session_state:  # it was too long in the last run
                st.query_params[key] = st.session_state[key]
            return self._bound(name, widget) or ""
        label = self.words.label(name)
        text = widget(label, key=key) or ""  # no longer bound: Streamlit removes it from the URL
        if key in st.query_params:  # it was never bound
            del st.query_params[key]
        st.session_state[unlinked] = True
        (self._notes or st).caption(self.common("unlinked", label=label))
        if self._sharing is not None:
            self._sharing.report_unlinked(key, label)
        return text

    def option(self, option: object) -> str:
        """Return the label of an option, in the words of the chapter or of all chapters; a list has several."""
        if isinstance(option, list):
            return series([_label(self.words, self.common, each) for each in option], self.words.language)
        return _label(self.words, self.common, option)

    def _bound(self, name: str, widget: Callable[..., Option], allowed: tuple[float, float] | None = None) -> Option:
        """Draw a widget of Streamlit; if it cannot show what the URL requests, report what it shows instead.

        `allowed` is the smallest and the largest number, for the report.
        """
        key = self.key(name)
        label = self.words.label(name)
        requested = st.query_params.get(key)
        if allowed is not None:
            discard_out_of_range(key, *allowed)
        from_url = key not in st.session_state or is_history_navigation()  # else the state decides
        value = widget(label, key=key, bind="query-params")
        if from_url and requested is not None:
            truncated = is_truncated(requested, value)
            dropped = key not in st.query_params and not is_same(requested, value, self.option(value))
            if truncated or dropped:
                limits = {} if allowed is None else {"low": f"{allowed[0]:,}", "high": f"{allowed[1]:,}"}
                advice = self.common(f"fallback-{'whole' if truncated else 'range'}", **limits) if limits else ""
                self._report_fallback(label, requested, self.option(value), advice)
        return value

    def _report_fallback(self, label: str, requested: str, shown: str, advice: str = "") -> None:
        shown = shown or self.common("fallback-nothing")
        note = self.common("fallback", label=label, asked=escape(requested[:40]), shown=shown)
        (self._notes or st).caption(join_sentences([note, advice]) if advice else note)


def _without_binding(widget: Callable[..., float], label: str, *, key: str, bind: str) -> float:  # noqa: ARG001
    del st.query_params[key]
    return widget(label, key=key)


def _label(words: Words, common: Words, option: object) -> str:
    """Return the label of an option, in the words of the chapter or of all chapters."""
    name = f"option.{option}"
    for known in (words, common):
        if known.has(name):
            return known(name)
    return localised(f"{option:,}", words.language) if isinstance(option, int | float) else str(option)
