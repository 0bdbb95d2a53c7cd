"""Scans made here, once the reader starts them: of a model of the lab, or of the reader's own texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from ui.chapter.chapter import Chapter
from ui.chapter.contents import page
from ui.compute.heads import HeadScans, scanned_table
from ui.compute.models import attempted, evaluate_model, local_model_kinds, local_models, typed_sources, warn_of_weights
from ui.compute.slots import is_hosted
from ui.text.markdown import escape
from ui.text.model_card import title_of
from ui.text.translations import explain
from ui.text.words import load_words
from viz_core.pretrained.samples import SETS, scan_inputs

if TYPE_CHECKING:  # they bring the hub's libraries, which only a model that is opened needs
    from serving.requests.hub import HubModelSpec
    from serving.requests.lab import HubOffer


_MAX_INPUTS = {False: 500, True: 40}  # texts or pictures of a scan; second: on a public server
_CHARACTERS = {False: 500_000, True: 20_000}  # of the reader's own texts
_AT_ONCE = 8  # between two steps of the progress
_MAX_SCANS = 6  # scans of a session


class Model(NamedTuple):
    """A model by its name, of a revision unless that is "", or in a folder."""

    name: str
    revision: str = ""
    folder: str = ""

    @property
    def spec(self) -> HubModelSpec:
        """The model on the machine that runs models; it is never downloaded from here."""
        from serving.requests.hub import HubModelSpec

        return HubModelSpec(self.name, self.revision, self.folder, offline=True)

    @property
    def title(self) -> str:
        """Its title, with the revision."""
        return f"{title_of(self.name)} @ {self.revision}" if self.revision else title_of(self.name)

    @property
    def address(self) -> dict[str, str]:
        """Parameters of this chapter that open a model of the lab."""
        if self.folder:
            return {"folder": self.folder}
        return {"lab": self.name, **({"revision": self.revision} if self.revision else {})}

    @property
    def lab_address(self) -> dict[str, str]:
        """Parameters of the lab that open it."""
        if self.folder:
            return {"ml-source": "folder", "ml-folder": self.folder}
        if self.revision:
            return {"ml-source": "hub", "ml-name": self.name, "ml-revision": self.revision}
        return {"ml-model": self.name}

    def code(self, worth: int) -> str:
        """The line that makes a scan of it with the worth on so many inputs."""
        given = f"Path({self.folder!r})" if self.folder else repr(self.name)
        revision = f", {self.revision!r}" if self.revision else ""
        return f"viz_core.lab.scan.scan(load_hub({given}{revision}), inputs, worth={worth})"


@dataclass(frozen=True)
class Task:
    """A scan: of a model, over texts, pictures or both."""

    model: Model
    texts: str  # name of the set
    reads: str  # as `HeadScans.reads`
    inputs: tuple[str, ...]

    @property
    def key(self) -> str:
        """A short name of all of it."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


def lab_model(chapter: Chapter) -> tuple[Model, str] | None:
    """Draw the lab's models on this machine; return one and what it reads, or None after a sentence why there is none.

    A folder or revision comes by a link from the lab, and opens as far as the lab opens it for this visitor.
    """
    from serving.requests.lab import hub_offer

    offer, sent = hub_offer(), _sent(chapter)
    if sent is not None and ("folder" if sent.folder else "hub") not in typed_sources(offer):
        st.caption(chapter.words("no-link"))
        sent = None
    found = _from_list(chapter, offer) if sent is None else _from_link(chapter, sent)
    if found is None or found[1] != "sound":
        return found
    st.info(chapter.words("no-sounds", model=escape(found[0].title)), icon=":material/mic_off:")
    link_to_lab(chapter, found[0])
    return None


def link_to_lab(chapter: Chapter, model: Model) -> None:
    """Draw a link that opens a model in the lab."""
    label, address = chapter.words("open-lab"), model.lab_address
    st.page_link(page("model-lab"), label=label, icon=":material/arrow_forward:", query_params=address)


def _from_list(chapter: Chapter, offer: HubOffer) -> tuple[Model, str] | None:
    from serving.requests.lab import reads_of_kind

    here = local_models(offer.folders)
    if st.query_params.get(chapter.controls.key("lab")) not in (None, *here):
        here = local_models(offer.folders, 0)  # it may have been downloaded since
    kinds = local_model_kinds(here)
    names = tuple(name for name in here if name in (offer.names or here) and name in kinds)
    if not names:
        st.info(load_words("model-lab")("none-offered"), icon=":material/inventory_2:")
        return None
    name = str(chapter.controls.select("lab", names, names[0], title_of))
    return Model(name), reads_of_kind(kinds[name])


def _sent(chapter: Chapter) -> Model | None:
    """The model of a link by a folder or a revision."""
    names = [chapter.controls.key(part) for part in ("folder", "lab", "revision")]
    folder, name, revision = (st.query_params.get(each, "").strip() for each in names)
    if folder:
        return Model(folder, folder=folder)
    return Model(name, revision) if name and revision else None


def _from_link(chapter: Chapter, model: Model) -> tuple[Model, str] | None:
    from viz_core.lab.runs import read_card

    def forget() -> None:
        for part in ("folder", "revision"):
            st.query_params.pop(chapter.controls.key(part), None)

    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(escape(model.title))
        st.button(chapter.words("other-model"), key=chapter.controls.key("forget"), on_click=forget)
    card = attempted(lambda: evaluate_model(model.spec, read_card))
    return None if card is None else (model, card.kind_class.input_label)


def task_of(model: Model, texts: str, reads: str) -> Task:
    """Return the scan of a model over a set that ships, of as much of it as this server takes."""
    return Task(model, texts, reads, scan_inputs(texts, pictures=reads != "text")[: _MAX_INPUTS[is_hosted()]])


def own_task(chapter: Chapter, model: Model) -> Task:
    """Draw the field for the reader's own texts; return the scan over them."""
    from serving.requests.lab import lines_of

    typed, hosted = chapter.controls.text("own", "", height=100), is_hosted()
    try:
        lines = lines_of(typed, _CHARACTERS[hosted])
    except ValueError as error:
        st.warning(explain(error), icon=":material/edit:")
        return Task(model, "own", "text", ())
    if len(lines) > _MAX_INPUTS[hosted]:
        counts = {"most": f"{_MAX_INPUTS[hosted]:,}", "more": f"{len(lines) - _MAX_INPUTS[hosted]:,}"}
        st.caption(load_words("model-lab")("corpus-more", **counts))
    return Task(model, "own", "text", lines[: _MAX_INPUTS[hosted]])


def scans_made(chapter: Chapter, tasks: Sequence[Task]) -> tuple[HeadScans, ...]:
    """Return those of these scans that this session has made."""
    made = _made(chapter)
    return tuple(made[task.key] for task in tasks if task.key in made)


def shipped_tasks(model: Model, reads: str) -> tuple[Task, ...]:
    """Return the scans of a model over the sets that ship."""
    return tuple(task_of(model, texts, reads) for texts in SETS)


def _made(chapter: Chapter) -> dict[str, HeadScans]:
    found: dict[str, HeadScans] = st.session_state.setdefault(chapter.controls.key("scans-made"), {})
    return found


def make_scan(chapter: Chapter, task: Task) -> None:
    """Draw a button that starts the scan; once started, make it with progress, then run the page again."""
    key, count = chapter.controls.key("scan"), len(task.inputs)
    if not count:
        return
    place = st.container(horizontal=True, vertical_alignment="center")
    if st.session_state.get(key) == task.key:
        with place:
            bar, stop = st.progress(0.0, chapter.words("scan-at-work", done=0, count=f"{count:,}")), {key: None}
            label = chapter.common("held-out-stop")
            st.button(label, key=f"{key}-stop", on_click=st.session_state.update, args=(stop,))
        attempted(lambda: warn_of_weights(task.model.spec))
        found = attempted(lambda: _scan(chapter, task, bar))
        if found is not None:
            made = _made(chapter)
            made[task.key] = found
            for old in list(made)[:-_MAX_SCANS]:
                del made[old]
            st.rerun()
        st.session_state[key] = None
    label, begin = chapter.words(f"scan.{task.reads}", count=f"{count:,}"), {key: task.key}
    stopped, done = st.session_state.get(chapter.controls.key("scan-done"), ("", 0))
    if stopped == task.key:
        st.caption(chapter.words("scan-kept", done=f"{done:,}", count=f"{count:,}"))
    st.button(label, key=f"{key}-go", type="primary", on_click=st.session_state.update, args=(begin,))


def _scan(chapter: Chapter, task: Task, bar: Any) -> HeadScans:
    """Scan part by part; each part is cached for all sessions, so that a scan that was stopped goes on."""
    from serving.requests.lab import Scan, plan_scan, scan_part, scan_repeats

    model, inputs, lines = task.model.spec, task.inputs, list[dict[str, Any]]()
    plan = evaluate_model(model, plan_scan)
    while len(lines) < len(inputs):
        worth = len(lines) < plan.worth and len(inputs) > 1
        some = inputs[len(lines) :][: 1 if worth else _AT_ONCE]
        lines += evaluate_model(model, scan_part, some, worth)
        st.session_state[chapter.controls.key("scan-done")] = task.key, len(lines)
        done = chapter.words("scan-at-work", done=f"{len(lines):,}", count=f"{len(inputs):,}")
        bar.progress(len(lines) / len(inputs), done)
    found = Scan.of(lines, evaluate_model(model, scan_repeats))
    if not found.kinds:
        raise found.left_out[0][1]
    tables = {(task.texts, kind): scanned_table(each, inputs) for kind, each in found.kinds.items()}
    command = task.model.code(min(plan.worth, len(inputs)) if len(inputs) > 1 else 0)
    counts = {task.texts: found.texts}, {task.texts: found.tokens}
    return HeadScans(command, task.reads, plan.head, *counts, tables, {task.texts: found.left_out})
