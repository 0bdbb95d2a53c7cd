"""The lab's models: which to load, loading with progress, and the card of a loaded one."""

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import streamlit as st

from serving.requests.hub import HubModelSpec, convert_folder, is_at_home, is_convertible
from serving.requests.lab import HubOffer
from serving.requests.models import NoModel
from ui.chapter.chapter import Chapter
from ui.compute.models import attempted, local_model_kinds, local_models, runner, typed_sources
from ui.compute.slots import compute_cached, is_hosted, load_or_stop
from ui.streamlit_internals.script_run import joining_run
from ui.text.markdown import escape
from ui.text.model_card import licence_of, named_model, title_of
from ui.text.numbers import half_width
from ui.text.translations import device_name
from ui.text.words import Words
from viz_core.hub import HubCard, check_name, check_revision, human_bytes
from viz_core.hub.kinds import ModelKind, kind_named
from viz_core.lab.runs import Window, read_card
from viz_core.trace.coverage import group_uncovered, ranges

Result = TypeVar("Result")
_BLINK = 0.4  # seconds; shorter work shows nothing
_STEP = 0.25


@dataclass
class Progress:
    """Bytes downloaded and their total; written by downloading threads, read by the page."""

    done: int = 0
    total: int = 0

    def __call__(self, done: int, total: int) -> None:
        self.done, self.total = done, total

    @property
    def share(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 0.0


def with_progress(label: str, work: Callable[[], Result], progress: Progress) -> Result:
    """Return what `work` returns, or raise what it raises; its thread continues when the page reruns."""
    place = st.empty()
    runner = ThreadPoolExecutor(1, initializer=joining_run())
    future = runner.submit(work)
    runner.shutdown(wait=False)
    wait([future], timeout=_BLINK)
    while not future.done():  # each word to the page gives Streamlit the chance to stop this run
        if progress.total:
            place.progress(progress.share, text=label)
        else:
            place.status(label)
        wait([future], timeout=_STEP)
    place.empty()
    return future.result()


CURATED = {
    "google-bert/bert-base-uncased": "encoder",
    "openai-community/gpt2": "decoder",
    "Qwen/Qwen3-0.6B": "decoder",
    "Helsinki-NLP/opus-mt-en-de": "encoder-decoder",
    "google-t5/t5-small": "encoder-decoder",
    "HuggingFaceTB/SmolVLM-256M-Instruct": "vision-language",
    "google/siglip-base-patch16-224": "dual-encoder",
    "openai/whisper-tiny": "speech",
    "facebook/dinov2-small": "vision",
    "google/vit-base-patch16-224": "vision",
}
"""Small models by name with their kind, all with safetensors, offered where no host says otherwise."""


def hub_card(model: HubModelSpec, progress: Progress) -> HubCard:
    """Load a model and return its card.

    Raises:
        HubError: if it cannot be had or run here.
        ValueError: if ATLAS_DEVICE names a device that is not here.
    """
    runner().load(model, progress)
    return runner().evaluate_model(model, read_card)


def choose_model(chapter: Chapter, offer: HubOffer) -> HubModelSpec | None:
    """The chosen model; None, after a message, where none can be loaded yet."""
    controls, words = chapter.controls, chapter.words
    here = local_models(offer.folders)
    offered = offer.names or (here if offer.restricted else ())
    if offered:
        name = str(controls.select("model", offered, offered[0], named_model))
        if offer.restricted:
            st.caption(words("folders-of-owner"))
        return HubModelSpec(name, offline=name in here)
    if not here:
        st.info(words("none-offered" if offer.restricted else "none-here"), icon=":material/inventory_2:")
    if offer.restricted:
        return None
    with st.container(horizontal=True, vertical_alignment="bottom", key="which"):
        source = controls.choice("source", ("list", *typed_sources(offer)), "list")
        if source == "list":
            options = (*here, *(name for name in CURATED if name not in here))
            name = str(controls.select("model", options, options[0], named_model))
            if name in here:
                return HubModelSpec(name, offline=True)
            return HubModelSpec(name) if _go_ahead(chapter, HubModelSpec(name)) else None
        model = (
            _typed_folder(chapter, "folder", "pattern")
            if source == "folder"
            else _typed_name(chapter, "name", "revision")
        )
    if source == "folder" and not model.folder:
        st.caption(words("no-folder"))
        return None
    return _as_typed(chapter, model, here)


def choose_second_model(
    chapter: Chapter, offer: HubOffer, first: HubModelSpec, kind: type[ModelKind]
) -> HubModelSpec | None:
    """A second model; None if the reader chooses none. The list has those that can be compared with the first.

    Args:
        kind: of the first.
    """
    controls = chapter.controls
    here = local_models(offer.folders)
    offered = offer.names or (here if offer.restricted else ())
    listed = offered or (*here, *(name for name in CURATED if name not in here))
    typed = typed_sources(offer)
    kinds = CURATED | local_model_kinds(here)
    fitting = (name for name in listed if name not in kinds or are_comparable(kind, kind_named(kinds[name])))
    others = tuple(name for name in fitting if name != first.name)
    options, named = ("no-other", *others, *typed), {other: named_model(other) for other in others}
    name = str(
        controls.select("other", options, "no-other", lambda option: named.get(option) or controls.option(option))
    )
    if name == "no-other":
        return None
    if name == "folder":
        return _as_typed(chapter, _typed_folder(chapter, "other-folder", "other-pattern"), here)
    if name == "hub":
        return _as_typed(chapter, _typed_name(chapter, "other-name", "other-revision"), here)
    if offered or name in here:
        return HubModelSpec(name, offline=name in here)
    return HubModelSpec(name) if _go_ahead(chapter, HubModelSpec(name)) else None


def are_comparable(first: type[ModelKind], second: type[ModelKind]) -> bool:
    """Whether maps of both can be shown side by side: of one kind, or a text read causally and in both directions."""
    return first.name == second.name or read_one_text_each_way(first, second)


def read_one_text_each_way(*kinds: type[ModelKind]) -> bool:
    """Whether both read texts alone, one of them causally and the other in both directions."""
    only_texts = all("text" in kind.inputs and "image" not in kind.inputs for kind in kinds)
    return only_texts and {kind.stack for kind in kinds} == {"encoder", "decoder"}


def _typed_folder(chapter: Chapter, name: str, pattern: str) -> HubModelSpec:
    controls, words = chapter.controls, chapter.words
    folder = controls.text(name, "", placeholder=words("placeholder.folder")).strip()
    offered = folder and is_at_home()  # a pattern may take forever, which is for its owner's own machine
    tokens = controls.text(pattern, "", placeholder=words("placeholder.pattern")).strip() if offered else ""
    return HubModelSpec(folder, folder=folder, pattern=tokens)


def _typed_name(chapter: Chapter, name: str, revision: str) -> HubModelSpec:
    controls, words = chapter.controls, chapter.words
    typed = half_width(controls.text(name, "", placeholder=words("placeholder.name")))
    return HubModelSpec(typed.strip(), controls.text(revision, "", placeholder=words("placeholder.revision")))


def _as_typed(chapter: Chapter, model: HubModelSpec, here: Collection[str]) -> HubModelSpec | None:
    """The model whose name was typed; None, after a message, where it cannot be loaded."""
    if model.folder:
        return model if _converted(chapter, model.folder) else None
    if not model.name:
        st.caption(chapter.words("no-name"))
        return None
    checked = attempted(lambda: HubModelSpec(check_name(model.name), check_revision(model.revision) or ""))
    if checked is None:
        return None
    if checked.name in here and not checked.revision:
        return HubModelSpec(checked.name, offline=True)
    return checked if _go_ahead(chapter, checked) else None


def _converted(chapter: Chapter, folder: str) -> bool:
    """Whether a folder needs no conversion; True too after the click that converts it."""
    if not load_or_stop(lambda: runner().evaluate_model(NoModel(), is_convertible, folder)):
        return True
    place, done = st.empty(), False
    with place.container():
        st.info(chapter.words("convert-note"), icon=":material/inventory_2:")
        if st.button(chapter.words("convert"), icon=":material/swap_horiz:", type="primary"):
            convert = partial(runner().evaluate_model, NoModel(), convert_folder, folder)
            done = attempted(lambda: load_or_stop(convert) or True) or False
    if done:
        place.empty()
    return done


def load(chapter: Chapter, model: HubModelSpec) -> HubCard | None:
    """The loaded model's card; None after an error message."""
    progress = Progress()
    label = chapter.words("loading", model=escape(title_of(model.name)))
    if is_hosted():  # a download, and what may be a stranger's, take a slot and have its limits
        read = partial(runner().evaluate_model, model, read_card)
        return attempted(
            lambda: compute_cached(read, read_card, (model,), "computing" if model.offline else "downloading")
        )
    return attempted(lambda: load_or_stop(lambda: with_progress(label, lambda: hub_card(model, progress), progress)))


def _go_ahead(chapter: Chapter, model: HubModelSpec) -> bool:
    """Whether to download: after a click, never by a link alone; one click is enough for a session."""
    key = f"{chapter.controls.key('loaded')}-{model.name}@{model.revision}"
    if not st.session_state.get(key):
        button = st.empty()
        if not button.button(chapter.words("download"), icon=":material/download:", type="primary"):
            st.caption(chapter.words("not-here", model=escape(model.name)))
            return False
        button.empty()
        st.session_state[key] = True
    return True


def model_card(chapter: Chapter, card: HubCard, seen: tuple[Window, ...] = (), num_tokens: int = 0) -> None:
    """Card of a loaded model, with the windows that its layers had in a run of so many tokens."""
    words = chapter.words
    layers = " + ".join(str(count) for count in card.num_layers.values())
    grouped = card.num_key_heads != card.num_heads
    heads = words("heads-grouped", heads=card.num_heads, keys=card.num_key_heads) if grouped else card.num_heads
    schemes = [words(f"scheme.{scheme}") for scheme in card.positions] or words("scheme.none")
    title = title_of(card.name)
    st.markdown(f"**{escape(title)}**" + (f"  `{card.name}`" if title != card.name else ""))
    chapter.text(
        "card",
        architecture=card.architecture,
        kind=words(f"kind.{card.kind}"),
        layers=layers,
        heads=heads,
        width=f"{card.width:,}",
        parameters=f"{card.num_parameters:,}",
        positions=schemes,
        reads=_reads(words, card),
        limit=_limit(words, card),
        licence=escape(licence_of(card.name, card.licence)) if card.licence else words("no-licence"),
        revision=escape(card.revision) if card.revision else words("no-revision"),
        source=words(f"source.{card.source}"),
        device=escape(device_name(card.device)),
        precision=card.precision,
        memory=human_bytes(card.memory),
        recording=words("recording-maps" if card.recording == "maps" else "recording-keys"),
    )
    for window in seen:
        reach = {"left": f"{window.left:,}", "right": f"{window.right:,}"}
        chapter.text("card-window", stack=window.stack, layers=_numbers(window.layers), **reach)
    if card.window and num_tokens and not seen:
        name = "card-window-unused" if num_tokens > card.window else "card-window-unseen"
        chapter.text(name, window=f"{card.window:,}", tokens=f"{num_tokens:,}")
    for row, numbers in group_uncovered(card.unrecorded).items():
        chapter.text(
            f"unrecorded.{row.code}", layers=_numbers(numbers), stack=escape(row.stack), module=escape(row.module)
        )
    if card.unused:
        chapter.text("unused", parts=[f"`{part}`" for part in card.unused])


def _numbers(layers: Iterable[int]) -> str:
    """Numbers of layers, from 1, as ranges."""
    return ranges(number + 1 for number in layers).replace(" to ", "–")


def _reads(words: Words, card: HubCard) -> str:
    """What goes in."""
    size = f"{card.vocabulary_size:,}" if card.vocabulary_size else _times(card.picture_size)
    name = f"reads-{card.kind_class.input_label}"
    return words(name, tokenizer=escape(card.tokenizer), size=size, patch=_times(card.patch_size))


def _limit(words: Words, card: HubCard) -> str:
    """How much it takes at once."""
    if card.sound_seconds is not None:
        return words("limit-seconds", seconds=f"{card.sound_seconds:g}")
    return words("limit", count=f"{card.max_tokens:,}") if card.max_tokens else words("no-limit")


def _times(size: tuple[int, int] | None) -> str:
    return f"{size[0]} × {size[1]}" if size else "?"
