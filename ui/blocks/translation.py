"""The sentence to translate and its translation, for every chapter that translates."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import streamlit as st
from PIL import Image

from serving.requests.shipped import TranslationRequest
from ui.blocks.over_picture import weights_image
from ui.chapter.chapter import Chapter
from ui.chapter.frame import Frame
from ui.compute.models import run, sentence_request, translation_maps
from ui.text.markdown import escape
from ui.text.translations import explain
from ui.text.words import ENGLISH, Words, current_language, load_words
from ui.widgets.inputs import set_text, shared_text_input
from viz_core.maps.contributions import ContributionKind
from viz_core.pretrained import CheckpointError, TextError, Translation
from viz_core.pretrained.bleu import book_sentence_bleu, sentence_bleu
from viz_core.pretrained.samples import BOOK_SENTENCES, Sample, sentence, sentences
from viz_core.pretrained.token_vectors import Tokens
from viz_core.pretrained.tokenization import clean
from viz_core.view.map_group import MapGroup
from viz_core.view.shipped import aligning_head

Result = TypeVar("Result")
DEFAULT_HEAD = 6
"""The head of the last encoder layer that chapters open on: it attends to the next word."""


def sentence_input(chapter: Chapter) -> str:
    """Draw a text input that begins with a sample sentence; return its text."""
    return shared_text_input(chapter.controls, "text", sentence("cat"), chapter.words("placeholder"))


def still_shown(problem: str, text: str) -> None:
    """Say what is wrong with a text, and that what is below is still that of another one."""
    st.warning(f"{problem} {load_words('translation')('kept', text=escape(text))}", icon=":material/edit:")


def read_or_keep(chapter: Chapter, text: str, read: Callable[[str], Tokens]) -> Tokens:
    """Return the tokens of a text; for one without any, after a message, those of the last one that had some.

    Args:
        read: may raise a TextError, whose message is for the reader.
    """
    key = chapter.controls.key("last-text")
    problem = "" if clean(text) else load_words("translation")("empty")
    try:
        if not problem and (tokens := read(text)).labels:
            st.session_state[key] = text
            return tokens
    except TextError as error:
        problem = explain(error)
    last = st.session_state.get(key, sentence("cat"))
    still_shown(problem or load_words("translation")("empty"), last)
    return read(last)


def or_explain(chapter: Chapter | Frame, run: Callable[[], Result]) -> Result | None:
    """Return what a shipped model returns, or None after a message that says why it cannot."""
    try:
        return run()
    except TextError as error:
        st.warning(explain(error), icon=":material/edit:")
    except CheckpointError as error:
        st.error(chapter.common("no-model", reason=explain(error)), icon=":material/inventory_2:")
    except ValueError as error:  # the device is missing; the message names those available
        st.error(explain(error), icon=":material/memory:")
    return None


def word_labels(words: Sequence[str], write: Callable[[str], str] = escape) -> dict[int, str]:
    """Return the words by their places from 1; a word that occurs more than once has its place beside it.

    Args:
        write: writes a word as the control takes it; as Markdown unless given.
    """
    times = Counter(words)
    return {i: write(word) if times[word] == 1 else f"{write(word)} {i}" for i, word in enumerate(words, 1)}


def choose_token(chapter: Chapter, name: str, tokens: Sequence[str], first: int, default: int) -> int:
    """Draw a list of the tokens from `first` on; return the place of the chosen one. Places count from 0."""
    if chapter.controls.key(name) in st.query_params:  # chosen by the reader; a default follows the text
        chapter.controls.clamp(name, len(tokens))
    labels = word_labels(tokens, str)
    places = tuple(range(first + 1, len(tokens) + 1))
    return chapter.controls.select(name, places, default + 1, labels.__getitem__) - 1


BEAMS = {"greedy": 1, "beam 4": 4}


def translation_inputs(chapter: Chapter, model: str) -> TranslationRequest:
    """Draw a text input, sample sentences and the choice of search; return what is chosen. The URL holds it."""
    words = load_words("translation")
    with st.container(key="ask", gap="small"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            text = shared_text_input(chapter.controls, "text", sentence("cat"), words("placeholder"))
            st.button(words("translate"), type="primary", key=chapter.controls.key("go"))
            with chapter.controls.more():
                search = chapter.controls.choice("search", tuple(BEAMS), "greedy")
        _presets(chapter, text, words)
    return sentence_request(model, text, BEAMS[search])


def _presets(chapter: Chapter, text: str, words: Words) -> None:
    """Draw the longer sample sentences as buttons; the one in the text line is selected."""
    key, english = chapter.controls.key("preset"), {each.id: each.english for each in sentences()[BOOK_SENTENCES:]}

    def choose() -> None:
        set_text(chapter.controls.key("text"), english[st.session_state[key]])

    st.session_state[key] = next((name for name, sentence in english.items() if sentence == text), None)
    st.radio(
        words("presets"),
        english,
        format_func=lambda name: words(f"preset.{name}"),
        key=key,
        on_change=choose,
        horizontal=True,
        label_visibility="collapsed",
        width="stretch",
    )


def translate(chapter: Chapter, request: TranslationRequest) -> Translation | None:
    """Return the translation, or None after a message that says why there is none."""
    return or_explain(chapter, partial(run, request, "translation", "translating"))


def translate_or_keep(chapter: Chapter, request: TranslationRequest) -> tuple[TranslationRequest, Translation]:
    """Return the request and its translation; for text that has none, after a message, those of the last one that had.

    Where there is no model the page ends with a message.
    """
    key = chapter.controls.key("last-text")
    try:
        result = run(request, "translation", "translating")
    except TextError as error:
        last = replace(request, text=st.session_state.get(key, sentence("cat")))
        still_shown(explain(error), last.text)
        return last, chapter.require(translate(chapter, last))
    except ValueError:  # no model, or no device: said once more, as a message
        return request, chapter.require(translate(chapter, request))
    st.session_state[key] = request.text
    return request, result


def second_sentence(
    chapter: Chapter, request: TranslationRequest, contribution_kind: ContributionKind = ""
) -> tuple[tuple[MapGroup, ...], tuple[str, str]]:
    """Draw the input of a second sentence; return its maps, or none, and the names of both sentences."""
    words = load_words("translation")
    text = chapter.controls.text("second", "", placeholder=words("placeholder"))
    second = replace(request, text=text)
    result = translate(chapter, second) if text.strip() else None
    if result is None:
        return (), ("", "")
    show_result(result)
    show_notes(chapter, second, result)
    maps = translation_maps(second, current_language(), contribution_kind)
    return maps, (clean(request.text), clean(text))


def show_result(result: Translation) -> None:
    """Draw the translation as a heading."""
    st.markdown(f"## {load_words('translation')('result', text=escape(result.text))}")


def show_notes(chapter: Chapter, request: TranslationRequest, result: Translation) -> None:
    """Draw notes on the search and, for a sample sentence, its BLEU scores."""
    words = load_words("translation")
    search = next(name for name, beam in BEAMS.items() if beam == request.beam)
    notes = [
        words(
            "measured",
            search=chapter.words(f"option.{search}"),
            tokens=len(result.target_tokens),
            score=f"{result.log_probability:.2f}",
        )
    ]
    sample = _sample(request.text)
    if sample is not None:
        notes.append(_scores(words, result, sample))
    if not result.complete:
        notes.append(words("incomplete"))
    if result.num_unknown:
        notes.append(words("unknown", count=result.num_unknown))
    st.caption("  \n".join(notes))


def sample_maps(model: str, sample_id: str) -> tuple[MapGroup, ...]:
    """Return the maps of a sample sentence, for a picture without text."""
    return translation_maps(sentence_request(model, sentence(sample_id)), ENGLISH)


def alignment_picture(model: str, sample_id: str) -> Image.Image:
    """Return a picture of the aligning head on a sample sentence."""
    groups = sample_maps(model, sample_id)
    view = aligning_head(groups)
    return weights_image(groups[-1].calls[view.layer].weights(head=view.head)[0].numpy())


def _scores(words: Words, result: Translation, sample: Sample) -> str:
    return words(
        "reference",
        reference=" / ".join(sample.references),
        book=f"{book_sentence_bleu(result.text, sample.references):.3f}",
        sacre=f"{sentence_bleu(result.text, sample.references):.1f}",
    )


def _sample(text: str) -> Sample | None:
    return next((sample for sample in sentences() if sample.english == clean(text)), None)
