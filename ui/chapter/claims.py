"""Claims: badges that compare a measured number with a limit, and findings on the data shown."""

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.chapter.parts import Content, Deferred, resolve
from ui.text.words import Words

_UNKNOWN = "…".ljust(9, "\u2007")  # as wide as "1.2 × 10⁻⁷": the row keeps its line breaks once the number is there
_HOLDS = {"off-by": operator.le, "at-most": operator.le, "at-least": operator.ge}


@dataclass(frozen=True)
class Claim:
    """A statement with the number that shows whether it is true.

    Attributes:
        key: of its badge.
        statement: what must hold.
        kind: "off-by" or "at-most", which hold up to the limit, or "at-least", which holds from the limit on.
        measured: the number.
        limit: the largest or smallest number for which it holds.
        unbroken: why no setting makes it fail, if none does.
    """

    key: str
    statement: str
    kind: str
    measured: Deferred[float]
    limit: float
    unbroken: str = ""

    @property
    def is_deferred(self) -> bool:
        """Whether the number is computed only once the claim is visible."""
        return callable(self.measured)

    def holds(self, number: float) -> bool:
        """Whether the number is on the right side of the limit."""
        return bool(_HOLDS[self.kind](number, self.limit))

    def draw(self, common: Words, number: float | None = None) -> None:
        """Draw the badge with its number, measured unless it is given."""
        number = resolve(self.measured) if number is None else number
        holds = self.holds(number)
        mark = ":green[:material/check:]" if holds else ":red[:material/close:]"
        values = {"measured": f"{number:.2g}", "limit": f"{self.limit:.2g}"}
        verdict = f"{common('holds' if holds else 'fails')} {common(f'measured.{self.kind}', **values)}"
        self._badge(f"{mark} {self.statement} {common(f'badge.{self.kind}', **values)}", verdict, fails=not holds)

    def pending(self, common: Words) -> str:
        """Return the text of the badge without its number."""
        values = {"measured": _UNKNOWN, "limit": f"{self.limit:.2g}"}
        return f":gray[:material/more_horiz:] {self.statement} {common(f'badge.{self.kind}', **values)}"

    def draw_pending(self, common: Words) -> None:
        """Draw the badge without its number."""
        hint = common(f"measured.{self.kind}", measured="…", limit=f"{self.limit:.2g}")
        self._badge(self.pending(common), hint)

    def _badge(self, text: str, hint: str, fails: bool = False) -> None:
        with st.container(key=f"{self.key}-fails" if fails else self.key, width="content"):
            st.markdown(text, help=f"{hint} {self.unbroken}".strip())


class Claims(Content):
    """The claims and findings of one page."""

    _row: list[Claim] | None = None  # the claims of the row that is being filled
    _above_figure: DeltaGenerator | None = None  # for rows beside a broken figure
    _below_figure: DeltaGenerator | None = None  # of the card that is being filled

    @contextmanager
    def claims(self) -> Iterator[None]:
        """Draw the heading of the claims, and the claims made inside the block in a row."""
        st.header(self.common("claims"), anchor="claims")
        with self.claim_row("claims"):
            yield

    @contextmanager
    def claim_row(self, name: str) -> Iterator[None]:
        """Fold the claims made inside the block into one line, open if one fails.

        Deferred numbers are computed once visible. Beside a broken figure they are drawn above it: what fails is
        in view when a link opens the page.
        """
        name = self.parts.unique_key(name)
        row: list[Claim] = []
        self._row = row
        try:
            yield
        finally:
            self._row = None

        def draw(measure: bool) -> None:
            numbers = [resolve(each.measured) if measure or not each.is_deferred else None for each in row]
            known = [each.holds(number) for each, number in zip(row, numbers, strict=True) if number is not None]
            failing = known.count(False)
            verdict = "checks-fail" if failing else "checks-hold" if len(known) == len(row) else "checks"
            icon = f":material/{'close' if failing else 'check' if len(known) == len(row) else 'more_horiz'}:"
            label = self.common(verdict, count=len(row), failing=failing)
            key = f"checks-{name}-fail" if failing else f"checks-{name}"  # under the old key it keeps its state
            place = st.expander(label, expanded=failing > 0, icon=icon, key=key)
            if not measure and not failing:  # closed, and not yet near the window, which measures them
                place.markdown("  \n".join(each.pending(self.common) for each in row))
                return
            with place, st.container(horizontal=True, gap="xsmall", key=name):
                for each, number in zip(row, numbers, strict=True):
                    (each.draw_pending if number is None else partial(each.draw, number=number))(self.common)

        with self._above_figure or nullcontext():
            if any(claim.is_deferred for claim in row):
                self.parts.lazy(name, partial(draw, True), 0, partial(draw, False))
            elif row:
                draw(True)

    def break_it(self, *names: str, part: str = "") -> str:
        """Offer wrong formulas that each make a claim fail (`option.NAME`); return the chosen one, or "".

        The choice is below its figure in a card, else here. Below it `break.NAME` says what is wrong with the chosen
        one; `side_by_side` shows what it does. A claim that no setting breaks says why in `unbroken.NAME`.

        Args:
            part: of the page that has a choice of its own, labelled `break-PART`.
        """
        with self._below_figure or st.container(key=self.parts.unique_key("breaks-here")):
            choice = self.controls.choice(f"break-{part}" if part else "break", ("nothing", *names), "nothing")
            if choice != "nothing":
                st.warning(self.words(f"break.{choice}"), icon=":material/build_circle:")
        return "" if choice == "nothing" else choice

    def side_by_side(self, broken: str, draw: Callable[[str], None]) -> None:
        """Draw a figure and its claims intact and, if something is broken, broken beside it.

        Args:
            broken: what `break_it` returned.
            draw: draws figure and claims with this setting; "" is intact.
        """
        if not broken:
            draw("")
            return
        with st.container(key="compared"):  # in rows: both figures begin at one height
            places = zip(st.columns(2, gap="medium"), st.columns(2, gap="medium"), ("", broken), strict=True)
        for above, below, setting in places:
            name = self.common("broken", name=self.words(f"option.{setting}")) if setting else self.common("intact")
            kind = "broken" if setting else "intact"
            self._above_figure = above.container(key=f"{kind}-checks")
            self._above_figure.markdown(f"**{name}**")
            try:
                with below.container(key=kind):
                    draw(setting)
            finally:
                self._above_figure = None

    def finding(self, name: str, holds: bool, **values: object) -> None:
        """Draw `finding.NAME` if it holds for the data shown, else `finding.NAME-not`.

        For sentences that compare ("wider", "half as fast"): a function of a lesson decides them, so that they are
        true at every setting of the controls.
        """
        st.caption(
            f":material/fact_check: {self.words(f'finding.{name}' if holds else f'finding.{name}-not', **values)}"
        )

    def claim(self, name: str, residual: Deferred[float], tolerance: float, **values: object) -> None:
        """Claim `claim.NAME`: the residual is at most the tolerance."""
        self._add(name, "off-by", residual, tolerance, values)

    def claim_at_most(self, name: str, measured: Deferred[float], most: float, **values: object) -> None:
        """Claim `claim.NAME`: the number, a ratio for example, is at most `most`."""
        self._add(name, "at-most", measured, most, values)

    def claim_at_least(self, name: str, measured: Deferred[float], least: float, **values: object) -> None:
        """Claim `claim.NAME`: the number is at least `least`, for what must differ."""
        self._add(name, "at-least", measured, least, values)

    def _add(self, name: str, kind: str, measured: Deferred[float], limit: float, values: dict[str, object]) -> None:
        statement = self.words(f"claim.{name}", **values)
        unbroken = self.words(f"unbroken.{name}") if self.words.has(f"unbroken.{name}") else ""
        claim = Claim(self.parts.unique_key(f"claim-{name}"), statement, kind, measured, limit, unbroken)
        if self._row is None:
            claim.draw(self.common)
        else:
            self._row.append(claim)
