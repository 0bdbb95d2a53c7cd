"""The main figure: every head as a point, any measure on either axis; and the maps of the chosen head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.heads.figures import heads_figure
from ui.chapter.chapter import Chapter
from ui.compute.head_scans import SETS, HeadScans, HeadTable, Quoted, head_scans, scanned_models
from ui.compute.models import map_groups
from ui.text.head_names import head_place
from ui.text.model_names import named_model
from ui.text.words import current_language
from ui.widgets.attention_view import ViewState
from viz_core.lessons.heads.uniform import uniform_masses
from viz_core.maps.roles import ROLES, beyond_chance

if TYPE_CHECKING:  # it brings the hub's libraries, which only a head that is opened needs
    from serving.requests.hub import HubRequest

PERCENTILES = (5, 50, 95, 100)
_WRITTEN = 64  # most tokens that the translator writes
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Head:
    """A head: its kind of maps, its place in the table of that kind, layer and head from 0."""

    kind: str
    place: int
    layer: int
    head: int

    @property
    def link(self) -> str:
        """As the address and the attention view name it."""
        return f"{self.kind}.{self.layer}.{self.head}"

    @property
    def site(self) -> str:
        """As the library names its layer."""
        stack, _, kind = self.kind.partition("-")
        return f"{stack}.{self.layer}.{kind}"


@dataclass(frozen=True)
class Plot:
    """What the controls ask for."""

    model: str
    texts: str
    x: str
    y: str
    percentile: int
    head: Head
    best: Head  # with the most of the vertical measure; chosen unless the address names one

    @property
    def scans(self) -> HeadScans:
        return head_scans(self.model)

    @property
    def table(self) -> HeadTable:
        """The table of the chosen head's kind."""
        return self.scans.tables[self.texts, self.head.kind]

    @property
    def shown(self) -> str:
        """The vertical measure; the entropy where these texts lack it."""
        return self.y if self.y in self.table.measures else "entropy"

    @property
    def example(self) -> Quoted:
        """The text at the chosen percentile of the vertical measure; of the entropy where that has no text."""
        quoted = self.table.quoted.get(self.y, ())
        own = quoted[self.head.place] if quoted else ()
        own = own or self.table.quoted["entropy"][self.head.place]
        return own[PERCENTILES.index(self.percentile)]


def choose_plot(chapter: Chapter) -> tuple[Plot, str]:
    """Draw the controls; return what they ask for, and what is broken of it."""
    controls = chapter.controls
    models = scanned_models()
    model = str(controls.select("model", models, models[0], named_model))
    before = st.session_state.get(controls.key("model-before"), model)
    if before != model:  # the head in the address was one of the other model
        st.query_params.pop("head", None)
    st.session_state[controls.key("model-before")] = model
    scans = head_scans(model)
    measures = tuple(dict.fromkeys(name for table in scans.tables.values() for name in table.measures))
    x = str(controls.select("x", measures, "previous"))
    y = str(controls.select("y", measures, "worth"))
    with controls.more():
        texts = str(controls.choice("texts", SETS, "narrow"))
        labels = {p: str(p) for p in PERCENTILES}
        percentile = int(controls.choice("percentile", PERCENTILES, 100, labels))
    broken = chapter.break_it("no-chance")
    best, heads = _best(scans, texts, y), all_heads(scans, texts)
    chosen = heads.get(st.query_params.get("head", ""), best)
    _list_of_heads(chapter, heads, chosen)
    return Plot(model, texts, x, y, percentile, chosen, best), broken


def _list_of_heads(chapter: Chapter, heads: Mapping[str, Head], chosen: Head) -> None:
    """Draw the list in which a head is chosen without a mouse; the address has it as `head`."""
    key = chapter.controls.key("head")
    several = len({head.kind for head in heads.values()}) > 1

    def name(link: str) -> str:
        place = head_place(heads[link].layer + 1, heads[link].head + 1)
        return f"{place} · {chapter.words(f'figure.{heads[link].kind}')}" if several else place

    def choose() -> None:
        st.query_params["head"] = st.session_state[key]

    st.session_state[key] = chosen.link
    st.selectbox(chapter.words.label("head"), list(heads), format_func=name, key=key, on_change=choose)


def all_heads(scans: HeadScans, texts: str) -> dict[str, Head]:
    """Every head of a model by its name in links."""
    heads = (
        Head(kind, place, layer, head)
        for kind in scans.kinds
        for place, (layer, head) in enumerate(scans.tables[texts, kind].heads)
    )
    return {head.link: head for head in heads}


def _best(scans: HeadScans, texts: str, measure: str) -> Head:
    """The head with the most of a measure."""
    return max(all_heads(scans, texts).values(), key=lambda head: _value(scans, texts, head, measure))


def _value(scans: HeadScans, texts: str, head: Head, measure: str) -> float:
    table = scans.tables[texts, head.kind]
    value = float(table.plotted(measure)[head.place]) if measure in table.measures else float("nan")
    return value if value == value else float("-inf")  # NaN: it has none


def uniform_score(text: str, causal: bool, raw: bool) -> float:
    """Return the largest score, without its sign, that a head with uniform attention has for a role in a text."""
    masses = uniform_masses(text.split(), causal).values()
    return max(abs(mass if raw else beyond_chance(mass, chance)) for mass, chance in masses)


def main_figure(chapter: Chapter, plot: Plot, compared: bool, setting: str) -> None:
    """Draw the points and the claim."""
    raw = bool(setting)
    with chapter.claim_row("main"):
        causal = plot.head.kind == "decoder-self"
        chapter.claim("uniform", uniform_score(plot.example.text, causal, raw), _ROUNDING)
    names = chapter.words.group("figure")
    drawn = {kind: table for (name, kind), table in plot.scans.tables.items() if name == plot.texts}
    drawn = {kind: table for kind, table in drawn.items() if {plot.x, plot.y} <= set(table.measures)}
    if not drawn:
        chapter.text("one-set")
        return
    titles = [axis_title(chapter, measure, raw) for measure in (plot.x, plot.y)]
    kinds = {kind: names[kind] for kind in drawn}
    figure = heads_figure(drawn, (plot.x, plot.y), titles, kinds, plot.head.link, raw)
    count = sum(len(table.heads) for table in drawn.values())
    values: dict[str, Any] = {
        "count": count,
        "x": titles[0],
        "y": titles[1],
        "head": head_place(plot.head.layer + 1, plot.head.head + 1),
    }

    def choose(point: object) -> None:
        st.query_params["head"] = str(point["customdata"][0])  # type: ignore[index]

    if compared:
        chapter.figure("heads-raw" if setting else "heads", figure, **values)
    else:
        chapter.figure("heads", figure, on_click=choose, **values)


def axis_title(chapter: Chapter, measure: str, raw: bool) -> str:
    """The name of a measure with its unit."""
    unit = ("raw" if raw else "beyond") if measure in ROLES else "nats" if measure == "worth" else "bits"
    return chapter.words(f"axis.{unit}", measure=chapter.words(f"option.{measure}"))


def maps_of_example(chapter: Chapter, plot: Plot) -> None:
    """Draw the maps of the example with the chosen head open; a head chosen there is chosen above."""
    one = plot.example
    chapter.text("example", percentile=plot.percentile, head=head_place(plot.head.layer + 1, plot.head.head + 1))
    groups = map_groups(example_request(plot.model, one.text), "model-lab", current_language())
    view = chapter.attention_view(groups, ViewState(plot.best.kind, plot.best.layer, plot.best.head))
    if f"{view.group}.{view.layer}.{view.head}" != plot.head.link:
        st.rerun()


def example_request(model: str, text: str) -> HubRequest:
    """The run of a shipped model on a text: decoders read it, the translator translates it."""
    from serving.requests.hub import HubModelSpec, HubRequest

    scans = head_scans(model)
    written = _WRITTEN if "decoder-cross" in scans.kinds else 0
    return HubRequest(HubModelSpec(model, offline=True), text, new_tokens=written)


def marked(words: Sequence[str]) -> str:
    """Tokens as a list in code marks."""
    return " ".join(f"`{word}`" for word in words)
