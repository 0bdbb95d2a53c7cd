"""Badges: what must be true, by how much it is missed, and whether that is little enough."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import streamlit as st

from ui.text.words import Words

Number: TypeAlias = float | Callable[[], float]
"""A number, or what measures it once someone looks."""

_UNKNOWN = "…".ljust(7, "\u2007")  # as wide as "1.2e-07": the row must not break elsewhere once it is measured
_HOLDS = {"off-by": operator.le, "at-most": operator.le, "at-least": operator.ge}


@dataclass(frozen=True)
class Claim:
    """A sentence with a number that shows whether it is true.

    Attributes:
        key: of its badge.
        says: what must be true.
        kind: "off-by" or "at-most", which hold up to the limit, or "at-least", which holds from it on.
        measured: the number.
        limit: what it is held to.
        unbroken: why no setting makes it fail, where none does.
    """

    key: str
    says: str
    kind: str
    measured: Number
    limit: float
    unbroken: str = ""

    @property
    def waits(self) -> bool:
        """Whether it is measured only once someone looks."""
        return callable(self.measured)

    def draw(self, common: Words) -> None:
        """The badge, measured now."""
        number = self.measured() if callable(self.measured) else self.measured
        holds = _HOLDS[self.kind](number, self.limit)
        mark = ":green[:material/check:]" if holds else ":orange[:material/close:]"
        told = {"measured": f"{number:.2g}", "limit": f"{self.limit:.2g}"}
        verdict = f"{common('holds' if holds else 'fails')} {common(f'measured.{self.kind}', **told)}"
        self._badge(f"{mark} {self.says} {common(f'badge.{self.kind}', **told)}", verdict)

    def say(self, common: Words) -> None:
        """The same before it is measured."""
        told = {"measured": _UNKNOWN, "limit": f"{self.limit:.2g}"}
        hint = common(f"measured.{self.kind}", measured="…", limit=told["limit"])
        self._badge(f":gray[:material/more_horiz:] {self.says} {common(f'badge.{self.kind}', **told)}", hint)

    def _badge(self, text: str, hint: str) -> None:
        with st.container(key=self.key, width="content"):
            st.markdown(text, help=f"{hint} {self.unbroken}".strip())
