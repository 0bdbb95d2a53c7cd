"""Scans made here, once the reader starts them: of a model of the lab, or of the reader's own texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ui.chapter.chapter import Chapter
from ui.compute.head_scans import SCANNED_KINDS, HeadScans, scanned_table
from ui.compute.lab_models import local_model_kinds, local_models
from ui.compute.models import evaluate_model
from ui.compute.slots import is_hosted, load_or_stop
from ui.text.errors import explain, first_line
from ui.text.model_names import title_of
from ui.text.words import load_words
from viz_core.pretrained.scan_inputs import SETS, scan_inputs

_MOST = {False: 500, True: 40}  # texts or pictures of a scan; second: on a public server
_CHARACTERS = {False: 500_000, True: 20_000}  # of the reader's own texts
_AT_ONCE = 8  # between two steps of the progress
_MOST_SCANS = 6  # scans of a session


@dataclass(frozen=True)
class Task:
    """A scan: of a model, over texts or pictures."""

    model: str
    texts: str  # name of the set
    pictures: bool
    inputs: tuple[str, ...]

    @property
    def key(self) -> str:
        """A short name of all of it."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


def lab_model(chapter: Chapter) -> tuple[str, bool] | None:
    """Draw the list of the lab's models on this machine; return one, and whether it takes pictures."""
    from serving.requests.lab_models import hub_offer

    offer, key = hub_offer(), chapter.controls.key("lab")
    if st.query_params.get(key, "") not in load_or_stop(lambda: local_models(offer.folders)):
        local_models.clear()  # it may have been downloaded since
    here = load_or_stop(lambda: local_models(offer.folders))
    kinds = load_or_stop(lambda: local_model_kinds(here))
    allowed = [name for name in here if name in (offer.names or here)]
    names = tuple(name for name in allowed if kinds.get(name) in SCANNED_KINDS)
    if not names:
        st.info(load_words("model-lab")("none-offered"), icon=":material/inventory_2:")
        return None
    model = str(chapter.controls.select("lab", names, names[0], title_of))
    return model, kinds[model] == "vision"


def task_of(model: str, texts: str, pictures: bool) -> Task:
    """Return the scan of a model over a set that ships, of as much of it as this server takes."""
    return Task(model, texts, pictures, scan_inputs(texts, pictures)[: _MOST[is_hosted()]])


def own_task(chapter: Chapter, model: str) -> Task:
    """Draw the field for the reader's own texts; return the scan over them."""
    from serving.requests.head_scan import lines_of

    typed, hosted = chapter.controls.text_area("own", "", height=100), is_hosted()
    try:
        lines = lines_of(typed, _CHARACTERS[hosted])
    except ValueError as error:
        st.warning(explain(error), icon=":material/edit:")
        return Task(model, "own", False, ())
    if len(lines) > _MOST[hosted]:
        counts = {"most": f"{_MOST[hosted]:,}", "more": f"{len(lines) - _MOST[hosted]:,}"}
        st.caption(load_words("model-lab")("corpus-more", **counts))
    return Task(model, "own", False, lines[: _MOST[hosted]])


def scans_made(chapter: Chapter, tasks: Sequence[Task]) -> tuple[HeadScans, ...]:
    """Return those of these scans that this session has made."""
    made = _made(chapter)
    return tuple(made[task.key] for task in tasks if task.key in made)


def shipped_tasks(model: str, pictures: bool) -> tuple[Task, ...]:
    """Return the scans of a model over the sets that ship."""
    return tuple(task_of(model, texts, pictures) for texts in SETS)


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
        try:
            found = _scan(chapter, task, bar)
        except ValueError as error:
            st.warning(explain(error), icon=":material/edit:")
        except (MemoryError, RuntimeError) as error:  # torch's own, when memory runs out in the middle
            st.error(load_words("model-lab")("failed", reason=first_line(error)), icon=":material/memory:")
        else:
            made = _made(chapter)
            made[task.key] = found
            for old in list(made)[:-_MOST_SCANS]:
                del made[old]
            st.rerun()
        st.session_state[key] = None
    label, begin = (
        chapter.words("scan-pictures" if task.pictures else "scan-texts", count=f"{count:,}"),
        {key: task.key},
    )
    st.button(label, key=f"{key}-go", type="primary", on_click=st.session_state.update, args=(begin,))


def _scan(chapter: Chapter, task: Task, bar: Any) -> HeadScans:
    """Scan part by part; each part is cached for all sessions, so that a scan that was stopped goes on."""
    from serving.requests.head_scan import Scan, plan_scan, scan_part, scan_repeats
    from serving.requests.hub import HubModelSpec

    model, inputs, lines = HubModelSpec(task.model, offline=True), task.inputs, list[dict[str, Any]]()
    plan = evaluate_model(model, plan_scan)
    while len(lines) < len(inputs):
        worth = len(lines) < plan.worth and len(inputs) > 1
        some = inputs[len(lines) :][: 1 if worth else _AT_ONCE]
        lines += evaluate_model(model, scan_part, some, task.pictures, worth)
        done = chapter.words("scan-at-work", done=f"{len(lines):,}", count=f"{len(inputs):,}")
        bar.progress(len(lines) / len(inputs), done)
    found = Scan.of(lines, evaluate_model(model, scan_repeats))
    if not found.kinds:
        raise found.left_out[0][1]
    tables = {(task.texts, kind): scanned_table(each, inputs) for kind, each in found.kinds.items()}
    command = _command(task, min(plan.worth, len(inputs)) if len(inputs) > 1 else 0)
    counts = {task.texts: found.texts}, {task.texts: found.tokens}
    return HeadScans(command, task.pictures, plan.head, *counts, tables, {task.texts: found.left_out})


def _command(task: Task, worth: int) -> str:
    """What makes the same scan without the app; the command line reads texts alone."""
    if task.pictures:
        return f'viz_core.hub.scan.scan(load_hub("{task.model}"), PICTURES, worth={worth})'
    return f"python -m recipes scan {task.model} --texts FILE --out FILE --worth {worth}"
