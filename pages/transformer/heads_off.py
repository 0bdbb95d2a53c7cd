"""Heads switched off: the translation without them beside the one with, and what that costs on held-out sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from asking.model_spec import ShippedTranslator
from ui.chapter import Chapter
from ui.compute import computed
from ui.controls import escape
from ui.models import HeadsOff, ask_model, translation, translation_maps
from ui.translation import Request
from ui.words import current_language
from viz_core.lessons.transformer.heads_off import Word, held_out_difference, held_out_statistics, words_beside
from viz_core.pretrained import Translation, Translator
from viz_core.pretrained.bootstrap import Difference
from viz_core.pretrained.samples import held_out
from viz_core.pretrained.tokenization import clean
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState

_SITES = {"encoder": "encoder.{}.self", "decoder": "decoder.{}.self", "cross": "decoder.{}.cross"}
_KINDS = {"encoder-self": "encoder", "decoder-self": "decoder", "cross": "cross"}  # by the view's groups
_AT_ONCE = 25  # sentences between two steps of the progress


def every_head(model: Translator) -> tuple[str, ...]:
    """All heads by the names they have in the address: "cross-3.5" is the fifth of the third layer."""
    sizes = model.card.config["model"]
    layers, heads = range(1, sizes["num_blks"] + 1), range(1, sizes["num_heads"] + 1)
    return tuple(f"{kind}-{layer}.{head}" for kind in _SITES for layer in layers for head in heads)


def name_of(view: ViewState) -> str:
    """The name of the head that is open."""
    return f"{_KINDS[view.group]}-{view.layer + 1}.{view.head + 1}"


def head_name(site: str, head: int) -> str:
    """The name of a head that the library knows by its site and number."""
    stack, layer, kind = site.split(".")
    return f"{'cross' if kind == 'cross' else stack}-{int(layer) + 1}.{head + 1}"


def as_sites(names: Sequence[str]) -> HeadsOff:
    """Heads as the library knows them, in one order whatever the reader's."""
    found = []
    for name in names:
        kind, place = name.split("-")
        layer, head = (int(number) - 1 for number in place.split("."))
        found.append((_SITES[kind].format(layer), head))
    return tuple(sorted(found))


def ask_heads_off(chapter: Chapter, model: Translator) -> tuple[str, ...]:
    """Which heads are off; all of it in the URL."""
    with st.expander(chapter.words("off"), icon=":material/toggle_off:"):
        return tuple(chapter.controls.several("without", every_head(model), []))


def show_without(chapter: Chapter, model: str, request: Request, result: Translation, off: tuple[str, ...]) -> None:
    """Both translations, changed words marked, and BLEU with and without on demand."""
    without = translation(model, request.text, request.beam, as_sites(off))
    with chapter.card("off"):
        for name, one, words in zip(("with", "without"), (result, without), words_beside(result, without), strict=True):
            with st.container(key=f"translation-{name}"):
                heads = ", ".join(off) if len(off) <= 6 else f"{', '.join(off[:6])} … ({len(off)})"
                chapter.text(f"off-{name}", heads=heads, score=f"{one.log_probability:.2f}")
                st.markdown(" ".join(_marked(word) for word in words))
        chapter.finding("same-translation", result.target_ids == without.target_ids)
        _over_held_out(chapter, model, as_sites(off))


def maps_without(model: str, request: Request, off: tuple[str, ...]) -> tuple[tuple[MapGroup, ...], tuple[str, str]]:
    """The maps of the run without these heads, to compare with, and what both runs are."""
    maps = translation_maps(model, request.text, request.beam, current_language(), as_sites(off))
    return maps, (clean(request.text), f"{clean(request.text)} − {', '.join(off)}")


def switches(chapter: Chapter, model: Translator, view: ViewState, off: tuple[str, ...]) -> None:
    """Under the maps: the open head off or on, all others of its layer off, all on again."""
    here, key = name_of(view), chapter.controls.key("without")
    others = [name for name in every_head(model) if name.split(".")[0] == here.split(".")[0] and name != here]
    toggled = [name for name in off if name != here] if here in off else [*off, here]
    with st.container(horizontal=True, key="switches"):
        for name, chosen, icon in (
            ("head-on" if here in off else "head-off", toggled, ":material/toggle_off:"),
            ("only-this", others, ":material/filter_1:"),
            ("all-on", [], ":material/restart_alt:"),
        ):
            st.button(
                chapter.words(name, head=here),
                key=chapter.controls.key(f"do-{name}"),
                icon=icon,
                on_click=st.session_state.update,
                args=({key: chosen},),
                disabled=name == "all-on" and not off,
            )


def toggle(chapter: Chapter, name: str) -> None:
    """Switch a head off, or on again; before the page runs."""
    key = chapter.controls.key("without")
    off = list(st.session_state.get(key) or [])
    st.session_state[key] = [one for one in off if one != name] if name in off else [*off, name]


def _marked(word: Word) -> str:
    text = escape(word.text)
    shown = f":orange-background[{text}]" if word.changed else text
    return f"{shown} :small[:gray[{word.probability:.0%}]]"


def _over_held_out(chapter: Chapter, model: str, off: HeadsOff) -> None:
    """BLEU with and without these heads, once asked for, with progress and a way out."""
    key, count = chapter.controls.key("held-out"), len(held_out())
    if not st.session_state.get(key):
        label = chapter.words("held-out-go", count=count)
        st.button(label, key=f"{key}-go", on_click=st.session_state.update, args=({key: True},))
        return
    place = st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, chapter.words("held-out-at-work"))
        st.button(
            chapter.words("held-out-stop"), key=f"{key}-stop", on_click=st.session_state.update, args=({key: False},)
        )
        for start in range(0, count, _AT_ONCE):
            for heads in ((), off):
                _statistics(model, heads, start)
            bar.progress(min(1.0, (start + _AT_ONCE) / count), chapter.words("held-out-at-work"))
    base, (value, low, high) = _difference(model, off)
    place.empty()
    numbers = {"base": base, "without": base + value}
    signed = {"difference": value, "low": low, "high": high}
    shown = {name: f"{number:.1f}" for name, number in numbers.items()}
    shown |= {name: f"{number:+.1f}" for name, number in signed.items()}
    chapter.text("held-out", count=count, **shown)
    chapter.finding("held-out-sure", low > 0 or high < 0)


def _statistics(model: str, off: HeadsOff, start: int) -> np.ndarray:
    return ask_model(ShippedTranslator(model), held_out_statistics, off, start, start + _AT_ONCE)


@computed()
def _difference(model: str, off: HeadsOff) -> tuple[float, Difference]:
    starts = range(0, len(held_out()), _AT_ONCE)
    base, other = (np.concatenate([_statistics(model, heads, start) for start in starts]) for heads in ((), off))
    return held_out_difference(base, other)
