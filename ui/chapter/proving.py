"""What a page says must be true, beside what comes out: claims, findings, and what the sources print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import streamlit as st

from ui.chapter.claims import Claim, Number
from ui.chapter.parts import PartedFrame
from ui.chapter.source_cards import Ours, draw_card, find_printed
from ui.text.words import Words


class ProvingFrame(PartedFrame):
    """A frame whose sentences are measured on the very data shown."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._row: list[Claim] | None = None  # the claims of the row that is being filled

    @contextmanager
    def claims(self) -> Iterator[None]:
        """The heading and the row in which claims stand."""
        st.header(self.common("claims"), anchor="claims")
        with self.claim_row("claims"):
            yield

    @contextmanager
    def claim_row(self, name: str) -> Iterator[None]:
        """Claims side by side, all said at once; what measures them is called once they come near the window."""
        row: list[Claim] = []
        self._row = row
        try:
            yield
        finally:
            self._row = None

        def draw(claims: Iterable[Callable[[Words], None]]) -> None:
            with st.container(horizontal=True, key=name):
                for claim in claims:
                    claim(self.common)

        measured, said = [claim.draw for claim in row], [claim.say if claim.waits else claim.draw for claim in row]
        if measured == said:
            draw(measured)
        else:
            self._parts.add(f"{self.name}-{name}", lambda: draw(measured), lambda: draw(said), room=0)

    def break_it(self, *names: str) -> str:
        """Settings each of which makes a claim of this page fail (`option.NAME`), and why (`break.NAME`).

        A claim that none of them breaks says why in `unbroken.NAME`, beside its badge.
        The one that is set, or "" for none; whoever measures the claims obeys it, and the badges turn.
        """
        chosen = self.controls.choice("break", ("nothing", *names), "nothing")
        if chosen == "nothing":
            return ""
        st.warning(self.words(f"break.{chosen}"), icon=":material/build_circle:")
        return chosen

    def finding(self, name: str, holds: bool, **values: object) -> None:
        """What these very data show: `finding.NAME` where it holds, `finding.NAME-not` where it does not.

        A sentence that compares ("wider", "half as fast") stands here, with a function of a lesson to decide it, so
        that it is true at any setting of the controls.
        """
        st.caption(
            f":material/fact_check: {self.words(f'finding.{name}' if holds else f'finding.{name}-not', **values)}"
        )

    def claim(self, name: str, residual: Number, tolerance: float, **values: object) -> None:
        """A badge: what must be true (`claim.NAME`), by how much it is missed, and whether that is little enough."""
        self._claim(name, "off-by", residual, tolerance, values)

    def claim_at_most(self, name: str, measured: Number, most: float, **values: object) -> None:
        """A badge for a number that is no error, a ratio say: it holds where it is at most this large."""
        self._claim(name, "at-most", measured, most, values)

    def claim_at_least(self, name: str, measured: Number, least: float, **values: object) -> None:
        """A badge for what must differ: it holds where the number measured is at least this large."""
        self._claim(name, "at-least", measured, least, values)

    def source_card(self, name: str, ours: Ours | Callable[[], Ours] = None, **values: object) -> None:
        """A card: what a source printed, what comes out here, the erratum: `book.NAME`, `erratum.NAME` and the list.

        What makes ours is called once the card comes near the window.

        Raises:
            KeyError: if the list (assets/book/printed.json) has no such row of this chapter.
        """
        row = find_printed(self.name, name)
        if callable(ours):
            self.lazy(f"book-{name}", lambda: draw_card(row, ours(), self.words, self.common, **values), height=96)
        else:
            draw_card(row, ours, self.words, self.common, **values)

    def sources(self, cards: Mapping[str, Ours | Callable[[], Ours]]) -> None:
        """What else the sources print of what this page shows, a card each behind one button; None: theirs alone."""

        def show() -> None:
            for name, ours in cards.items():
                self.source_card(name, ours)

        self.expander("sources", self.common("sources"), ":material/menu_book:", show)

    def _claim(self, name: str, kind: str, measured: Number, limit: float, values: dict[str, object]) -> None:
        says = self.words(f"claim.{name}", **values)
        unbroken = self.words(f"unbroken.{name}") if self.words.has(f"unbroken.{name}") else ""
        claim = Claim(self._unique(f"claim-{name}"), says, kind, measured, limit, unbroken)
        if self._row is None:
            claim.draw(self.common)
        else:
            self._row.append(claim)
