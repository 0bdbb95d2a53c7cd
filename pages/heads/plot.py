"""The main figure: every head as a point, any measure on either axis; and the maps of the chosen head."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.heads.figures import heads_figure
from pages.heads.live import Model, Task, lab_model, own_task, scans_made, shipped_tasks
from ui.chapter.chapter import Chapter
from ui.compute.heads import PERCENTILES, HeadScans, HeadTable, Quoted, head_scans, scanned_models
from ui.compute.models import evaluate_model, map_groups, warn_of_weights
from ui.text.head_names import head_place
from ui.text.markdown import escape
from ui.text.model_card import title_of
from ui.text.translations import explain
from ui.text.words import current_language, load_words
from ui.widgets.attention_view import ViewState
from ui.widgets.controls import Menu
from viz_core.lessons.heads import uniform_masses
from viz_core.maps.register import MEASURES, ROLES, beyond_chance
from viz_core.pretrained.samples import scan_picture

if TYPE_CHECKING:  # it brings the hub's libraries, which only a head that is opened needs
    from serving.requests.hub import HubRequest

LAB = "lab"
"""The option of the list of models for one of the lab."""

_WRITTEN = 64  # most tokens that the translator writes
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Head:
    """A head: its kind of maps, its place in the table of that kind, layer and head from 0.

    The attention view counts only the layers that have maps: `view_layer` is the layer's place among them.
    """

    kind: str
    place: int
    layer: int
    head: int
    view_layer: int

    @property
    def link(self) -> str:
        """As the address and the attention view name it."""
        return f"{self.kind}.{self.view_layer}.{self.head}"

    @property
    def site(self) -> str:
        """As the library names its layer."""
        stack, _, kind = self.kind.partition("-")
        return f"{stack}.{self.layer}.{kind}"


@dataclass(frozen=True)
class Plot:
    """What the controls ask for."""

    model: Model
    texts: str
    x: str
    y: str
    percentile: int
    head: Head
    best: Head  # with the most of the vertical measure; chosen unless the address names one
    scans: HeadScans
    address: Mapping[str, str]  # parameters that choose the model

    @property
    def table(self) -> HeadTable:
        """The table of the chosen head's kind."""
        return self.scans.tables[self.texts, self.head.kind]

    @property
    def shown(self) -> str:
        """The vertical measure; another where these texts lack it."""
        return self.y if self.y in self.table.measures else next(iter(self.table.quoted))

    @property
    def example(self) -> Quoted:
        """The text at the chosen percentile of the vertical measure; of another where that has no text."""
        quoted = self.table.quoted.get(self.y, ())
        own = quoted[self.head.place] if quoted else ()
        own = own or next(each[self.head.place] for each in self.table.quoted.values() if each[self.head.place])
        return own[PERCENTILES.index(self.percentile)]


def choose_plot(chapter: Chapter) -> tuple[Plot | Task | None, str]:
    """Draw the controls; return what they ask for or the scan that is to be made first, and what is broken of it."""
    with chapter.main_controls():
        models, *axes = (st.container() for _ in range(3))
        more = chapter.controls.menu(chapter.common("more"), ":material/tune:")
    typed = st.container()
    with models:
        found = _choose_scan(chapter, more, typed)
    if found is None or isinstance(found, Task):
        return found, ""
    return _choose_axes(chapter, dict(zip("xy", axes, strict=True)), more, *found)


def _choose_scan(
    chapter: Chapter, more: Menu, typed: DeltaGenerator
) -> tuple[Model, str, HeadScans, Mapping[str, str]] | Task | None:
    """Draw the lists of models and data; return model, data, scans and parameters, or the scan that is to be made.

    Args:
        more: holds the list of data.
        typed: where the field for the reader's own texts goes, and a warning of weights that are no numbers.
    """
    controls = chapter.controls
    models = (*scanned_models(), LAB)
    chosen = str(controls.select("model", models, models[0], lambda m: controls.option(m) if m == LAB else title_of(m)))
    opened = lab_model(chapter) if chosen == LAB else (Model(chosen), head_scans(chosen).reads)
    if opened is None:
        return None
    model, reads = opened
    before = st.session_state.get(controls.key("model-before"), model)
    if before != model:  # the head in the address was one of the other model
        st.query_params.pop("head", None)
    st.session_state[controls.key("model-before")] = model
    tasks = {task.texts: task for task in shipped_tasks(model, reads)}
    sets = (*tasks, "own") if reads == "text" else tuple(tasks)
    with more.block():
        texts = str(controls.choice("texts", sets, sets[0]))
    if texts == "own":
        with typed:
            tasks["own"] = own_task(chapter, model)
    has_tables = model == Model(model.name) and model.name in scanned_models()
    shipped = (head_scans(model.name),) if has_tables else ()
    made = scans_made(chapter, tuple(tasks.values()))
    if made:
        with typed:
            warn_of_weights(model.spec)
    found = (*shipped, *made)
    shown = [each for each in found if texts in each.texts]
    if not shown:
        return tasks[texts]
    scans = replace(sum(found[1:], start=found[0]), command=shown[-1].command)
    return model, texts, scans, {"model": chosen, **(model.address if chosen == LAB else {})}


def _choose_axes(
    chapter: Chapter,
    places: Mapping[str, DeltaGenerator],
    more: Menu,
    model: Model,
    texts: str,
    scans: HeadScans,
    address: Mapping[str, str],
) -> tuple[Plot, str]:
    controls = chapter.controls
    tables = [table for (name, _), table in scans.tables.items() if name == texts]
    measures = tuple(dict.fromkeys(name for table in tables for name in table.measures))
    first = {"x": "previous" if "previous" in measures else "first", "y": "worth" if "worth" in measures else "entropy"}
    names, axes = partial(measure_name, chapter, pictures=scans.pictures), {}
    for axis, name in first.items():
        with places[axis]:
            axes[axis] = str(controls.select(axis, measures, name if name in measures else measures[0], names))
    broken = chapter.break_it("no-chance")
    best, heads = _best(scans, texts, **axes), all_heads(scans, texts)
    chosen = heads.get(st.query_params.get("head", ""), best)
    with more.block():
        _list_of_heads(chapter, heads, chosen)
        labels = {p: str(p) for p in PERCENTILES}
        percentile = int(controls.choice("percentile", PERCENTILES, 100, labels))
    return Plot(model, texts, axes["x"], axes["y"], percentile, chosen, best, scans, address), broken


def _list_of_heads(chapter: Chapter, heads: Mapping[str, Head], chosen: Head) -> None:
    """Draw the list in which a head is chosen without a mouse; the address has it as `head`."""
    key = chapter.controls.key("head")
    kinds = {head.kind for head in heads.values()}

    def name(link: str) -> str:
        return _head_name(chapter, heads[link], kinds)

    def choose() -> None:
        st.query_params["head"] = st.session_state[key]

    st.session_state[key] = chosen.link
    st.selectbox(chapter.words.label("head"), list(heads), format_func=name, key=key, on_change=choose)


def _head_name(chapter: Chapter, head: Head, kinds: Collection[str]) -> str:
    """Where a head is, with its kind of maps if there are several."""
    place = head_place(head.layer + 1, head.head + 1)
    return f"{place} · {chapter.words(f'figure.{head.kind}')}" if len(kinds) > 1 else place


def all_heads(scans: HeadScans, texts: str) -> dict[str, Head]:
    """Every head of a model by its name in links."""
    heads = (
        Head(kind, place, layer, head, table.layers.index(layer))
        for (name, kind), table in scans.tables.items()
        if name == texts
        for place, (layer, head) in enumerate(table.heads)
    )
    return {head.link: head for head in heads}


def _best(scans: HeadScans, texts: str, x: str, y: str) -> Head:
    """The head with the most of the vertical measure, of those on the figure if it has any."""
    heads = all_heads(scans, texts).values()
    return max(heads, key=lambda h: ({x, y} <= set(scans.tables[texts, h.kind].measures), _value(scans, texts, h, y)))


def _value(scans: HeadScans, texts: str, head: Head, measure: str) -> float:
    table = scans.tables[texts, head.kind]
    value = float(table.plotted(measure)[head.place]) if measure in table.measures else float("nan")
    return value if value == value else float("-inf")  # NaN: it has none


def uniform_score(text: str, causal: bool, raw: bool) -> float:
    """Return the largest score, without its sign, that a head with uniform attention has for a role in a text."""
    masses = uniform_masses(text.split(), causal).values()
    return max(abs(mass if raw else beyond_chance(mass, chance)) for mass, chance in masses)


def main_figure(chapter: Chapter, plot: Plot, compared: bool, setting: str) -> None:
    """Draw the points and, below them, the claim."""
    raw = bool(setting)
    names = chapter.words.group("figure")
    drawn = {kind: table for (name, kind), table in plot.scans.tables.items() if name == plot.texts}
    drawn = {kind: table for kind, table in drawn.items() if {plot.x, plot.y} <= set(table.measures)}
    if not drawn:
        chapter.text("no-kind")
        return
    titles = [axis_title(chapter, plot.scans, measure, raw) for measure in (plot.x, plot.y)]
    figure = heads_figure(drawn, (plot.x, plot.y), titles, names, plot.head.link, raw)
    count = sum(len(table.heads) for table in drawn.values())
    values: dict[str, Any] = {
        "count": count,
        "x": titles[0],
        "y": titles[1],
        "head": _head_name(chapter, plot.head, plot.scans.kinds),
    }

    def choose(point: object) -> None:
        st.query_params["head"] = str(point["customdata"][0])  # type: ignore[index]

    if compared:
        chapter.figure("heads-raw" if setting else "heads", figure, **values)
    else:
        chapter.figure("heads", figure, on_click=choose, **values)
    if skipped := left_out(plot):
        st.caption(skipped)
    with chapter.claim_row("main"):
        causal = plot.head.kind == "decoder-self"
        text = plot.example.text
        if plot.scans.reads != "text":  # a word a patch
            text = " ".join(map(str, range(plot.scans.tokens[plot.texts] // plot.scans.texts[plot.texts])))
        chapter.claim("uniform", uniform_score(text, causal, raw), _ROUNDING)


def measure_name(chapter: Chapter, measure: str, pictures: bool = False) -> str:
    """The name of a measure, as the chapter or the attention view has it."""
    sections, name = load_words("attention-view").sections, f"measure_{measure}"
    if pictures and f"{name}_picture" in sections:
        return sections[f"{name}_picture"]
    return chapter.words(f"option.{measure}") if chapter.words.has(f"option.{measure}") else sections[name]


def worth_unit(chapter: Chapter, scans: HeadScans) -> str:
    """What worth is measured in: the loss of words or classes, or how far the last states turn."""
    return chapter.words(f"unit.{scans.head}" if scans.head in ("words", "labels") else "unit.states")


def axis_title(chapter: Chapter, scans: HeadScans, measure: str, raw: bool) -> str:
    """The name of a measure with its unit."""
    name = measure_name(chapter, measure, scans.pictures)
    if measure in ROLES:
        return chapter.words("axis.raw" if raw else "axis.beyond", measure=name)
    if measure == "worth":
        return chapter.words("axis.worth", measure=name, unit=worth_unit(chapter, scans))
    unit = MEASURES[measure].unit
    return chapter.words("axis.unit", measure=name, unit=chapter.words(f"unit.{unit}")) if unit != "share" else name


def maps_of_example(chapter: Chapter, plot: Plot) -> None:
    """Draw the maps of the example with the chosen head open; a head chosen there is chosen above."""
    one = plot.example
    groups = map_groups(example_request(plot, one.text), "model-lab", current_language())
    group = next(group for group in groups if group.id == plot.head.kind)
    here = {"percentile": plot.percentile, "head": _head_name(chapter, plot.head, plot.scans.kinds)}
    if 0 <= one.query < len(group.query_tokens):
        chapter.text("example-query", query=escape(group.query_tokens[one.query]), **here)
        _pin(chapter, plot, f"q{one.query}")
    else:
        chapter.text("example", **here)
        _pin(chapter, plot, "")
    view = chapter.attention_view(groups, ViewState(plot.best.kind, plot.best.view_layer, plot.best.head))
    if f"{view.group}.{view.layer}.{view.head}" != plot.head.link:
        st.rerun()


def _pin(chapter: Chapter, plot: Plot, pin: str) -> None:
    """Pin the example's query in the address, once for each example; a pin that came with a link stays."""
    key, shown = chapter.controls.key("pinned"), (plot.model, plot.texts, plot.y, plot.percentile, plot.head.link)
    before = st.session_state.get(key)
    st.session_state[key] = shown
    if before == shown or (before is None and "pin" in st.query_params):
        return
    if pin:
        st.query_params["pin"] = pin
    else:
        st.query_params.pop("pin", None)


def example_request(plot: Plot, text: str) -> HubRequest:
    """The run of a model on a text or picture: decoders read it, a translator translates it."""
    from serving.requests.hub import HubRequest, RunInputs
    from serving.requests.lab import text_beside
    from serving.requests.request import Picture
    from viz_core.lab.runs import read_card

    model = plot.model.spec
    if plot.scans.reads != "text":
        prompt = evaluate_model(model, read_card).prompt
        beside = text_beside(text, prompt) if plot.scans.reads == "both" else ""
        picture = Picture(f"scan-{text}", scan_picture(text))
        return HubRequest(model, RunInputs(beside or None, image=picture, max_new_tokens=0))
    written = _WRITTEN if "decoder-cross" in plot.scans.kinds else 0
    return HubRequest(model, RunInputs(text, max_new_tokens=written))


def left_out(plot: Plot) -> str:
    """Why a first text was left out; "" if all were read."""
    some = plot.scans.left_out.get(plot.texts, ())
    if not some:
        return ""
    number, why = some[0]
    words = load_words("model-lab")
    return words("corpus-left", count=f"{len(some):,}", number=f"{number + 1:,}", why=explain(why))


def marked(words: Sequence[str]) -> str:
    """Tokens as a list in code marks."""
    return " ".join(f"`{word}`" for word in words)
