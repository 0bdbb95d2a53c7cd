"""Open an uploaded sound within limits, convert it to one channel of 16,000 samples a second."""

import io
import re

import numpy as np
import soundfile
import soxr

from viz_core.runtime.refusal import RefusalError
from viz_core.sounds.sound import RATE, Sound

MAX_BYTES = 10 * 2**20
MAX_SECONDS = 30.0
MIN_SECONDS = 0.1
RATES = (4_000, 192_000)
MAX_CHANNELS = 8

_FORMATS = ("WAV", "WAVEX", "FLAC", "OGG", "MP3")
_BLOCK = 2**16  # frames decoded at a time
_NAMES = ("WAV", "FLAC", "OGG", "MP3")
_NO_SOUND = "This file is not a sound that can be read. Only {formats} sounds can be opened."
_CUT_SHORT = "This sound cannot be read to its end: the file may be cut short. Save it again and try once more."
_KNOWN = rb"RIFF....WAVE|fLaC|OggS|ID3|\xff[\xe0-\xff]"
# What people send by mistake, by how it begins.
_OTHER_FORMATS = (
    (
        rb"....ftyp",
        "This is an MP4, M4A or MOV file. Only {formats} sounds can be opened: save its sound as WAV or MP3.",
    ),
    (
        rb"\x1a\x45\xdf\xa3",
        "This is a WebM or Matroska file. Only {formats} sounds can be opened: save its sound as WAV.",
    ),
    (rb"\x30\x26\xb2\x75", "This is a Windows Media file. Only {formats} sounds can be opened: save its sound as WAV."),
    (rb"FORM....AIF|caff", "This is an AIFF or CAF file. Only {formats} sounds can be opened: save it as WAV."),
    (rb"#!AMR", "This is an AMR recording. Only {formats} sounds can be opened: save it as WAV."),
)


class SoundError(RefusalError, ValueError):
    """A file that cannot be opened as a sound; the message is for the person who uploaded it."""


def open_sound(content: bytes, max_bytes: int = MAX_BYTES, max_seconds: float = MAX_SECONDS) -> Sound:
    """Open WAV, FLAC, OGG (Vorbis, Opus) or MP3: channels averaged, resampled by soxr to 16,000 samples a second.

    What the header says is judged before anything is decoded, and what comes is counted as it comes: at most 10 MB and
    30 seconds unless a host allows less. The name of a file counts for nothing. Samples louder than full are cut to it.

    Raises:
        SoundError: if it is too large, too long or too short, of another kind, or broken.
    """
    if not content:
        raise SoundError("This file is empty.")
    if len(content) > max_bytes:
        raise SoundError(
            "This file has {size:.1f} MB; a sound may have at most {most:g}.",
            size=len(content) / 2**20,
            most=max_bytes / 2**20,
        )
    if not re.match(_KNOWN, content, flags=re.DOTALL):  # before a decoder sees a byte of it
        known = (sentence for pattern, sentence in _OTHER_FORMATS if re.match(pattern, content, flags=re.DOTALL))
        raise SoundError(next(known, _NO_SOUND), formats=_NAMES)
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            _check_header(file, max_seconds)
            mono, rate = _mixed(file, max_seconds), file.samplerate
    except SoundError:
        raise
    except Exception:  # a broken file makes the decoder raise several kinds of error
        raise SoundError(_CUT_SHORT) from None
    if len(mono) < MIN_SECONDS * rate:
        raise SoundError(
            "There is too little to hear in this file: it lasts {seconds:.2f} s.", seconds=len(mono) / rate
        )
    if not np.isfinite(mono).all():
        raise SoundError("Some samples of this sound are not numbers. Save it again, with 16 bits a sample.")
    return Sound(soxr.resample(mono.clip(-1, 1), rate, RATE).clip(-1, 1).astype(np.float32))


def _check_header(file: soundfile.SoundFile, max_seconds: float) -> None:
    if file.format not in _FORMATS:
        raise SoundError(_NO_SOUND, formats=_NAMES)
    if not RATES[0] <= file.samplerate <= RATES[1]:
        raise SoundError(
            "This sound has {rate:,} samples a second; {low:,} to {high:,} can be read. Save it with {good:,}.",
            rate=file.samplerate,
            low=RATES[0],
            high=RATES[1],
            good=RATE,
        )
    if file.channels > MAX_CHANNELS:
        raise SoundError(
            "This sound has {count} channels; at most {most} can be read. Save it with one.",
            count=file.channels,
            most=MAX_CHANNELS,
        )
    if file.frames > max_seconds * file.samplerate and file.format != "MP3":  # whose header may only guess
        raise _too_long(file.frames / file.samplerate, max_seconds)


def _mixed(file: soundfile.SoundFile, max_seconds: float) -> np.ndarray:
    """The mean of the channels, decoded in blocks up to the limit."""
    blocks, frames = [np.zeros(0, dtype=np.float32)], 0
    while len(block := file.read(_BLOCK, dtype="float32", always_2d=True)):
        frames += len(block)
        if frames > max_seconds * file.samplerate:
            raise _too_long(None, max_seconds)
        with np.errstate(invalid="ignore"):  # NaN and infinity are reported after decoding
            blocks.append(block.mean(axis=1))
    return np.concatenate(blocks)


def _too_long(seconds: float | None, most: float) -> SoundError:
    if seconds is None or seconds > 1e6:
        return SoundError(
            "This sound is too long; at most {most:g} s are heard at once. Cut out a part of it.", most=most
        )
    return SoundError(
        "This sound lasts {seconds:,.1f} s; at most {most:g} s are heard at once. Cut out a part of it.",
        seconds=seconds,
        most=most,
    )
