"""Control for a sound: synthetic tones, a file, or the microphone."""

from __future__ import annotations

import streamlit as st

from serving.requests.sound import SoundInput
from ui.chapter.chapter import Chapter
from ui.compute.recordings import read_sound, sample_sound
from ui.text.errors import explain
from ui.widgets.inputs import sound_file
from viz_core.sounds.open_sound import SoundError


def choose_sound(chapter: Chapter) -> SoundInput | None:
    """The chosen sound, with a player; None, after a message, where there is none yet."""
    words = chapter.words
    source = chapter.controls.choice("sound", ("tones", "sound-file", "microphone"), "tones")
    if source == "tones":
        given = sample_sound()
        st.caption(words("drawn-tones"))
    else:
        content = _brought(chapter, str(source))
        if content is None:
            st.caption(words("no-sound"))
            return None
        try:
            given = read_sound(content)
        except SoundError as error:
            st.warning(explain(error), icon=":material/graphic_eq:")
            return None
    st.audio(given.open().wav(), alt=words("whole-sound"))
    return given


def _brought(chapter: Chapter, source: str) -> bytes | None:
    """What the reader uploads or records."""
    words, key = chapter.words, chapter.controls.key(source)
    if source == "sound-file":
        return sound_file(words("sound-file"), key)
    recorded = st.audio_input(words("microphone"), key=key)
    return None if recorded is None else recorded.getvalue()
