"""Sounds come in as 16,000 samples a second of one channel, or with a sentence that says why not."""

import io
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from tests.viz_core.hostile import bounded
from viz_core.sounds.open_sound import SoundError, open_sound
from viz_core.sounds.sound import RATE

PCM, FLOAT = 1, 3


def tone(rate: int = 16_000, seconds: float = 0.5, hertz: float = 440.0, channels: int = 1) -> np.ndarray:
    """A sine, half as loud as can be, alike in every channel."""
    time = np.arange(round(rate * seconds)) / rate
    return np.repeat(0.5 * np.sin(2 * np.pi * hertz * time)[:, None], channels, axis=1).astype(np.float32)


def encode(samples: np.ndarray, rate: int, form: str, subtype: str | None = None) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=form, subtype=subtype)
    return file.getvalue()


def wav(
    data: bytes, *, rate: int = 16_000, channels: int = 1, bits: int = 16, kind: int = PCM, claims: int | None = None
) -> bytes:
    """A WAV file by hand, whose header may say anything; `claims`: bytes of sound that it says there are."""
    frame = channels * bits // 8
    form = struct.pack("<HHIIHH", kind, channels, rate, (rate * frame) % 2**32, frame % 2**16, bits)
    size = len(data) if claims is None else claims
    chunks = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", size)
    return b"RIFF" + struct.pack("<I", min(2**32 - 1, len(chunks) + size)) + chunks + data


SIXTEEN = (tone()[:, 0] * 32767).astype("<i2").tobytes()

GOOD = {
    "WAV of a microphone": encode(tone(), 16_000, "WAV", "PCM_16"),
    "WAV of a studio": encode(tone(96_000, channels=2), 96_000, "WAV", "PCM_24"),
    "WAV in floats": encode(tone(48_000), 48_000, "WAV", "FLOAT"),
    "WAV of a telephone": encode(tone(8_000), 8_000, "WAV", "ULAW"),
    "WAV in 8 bits": encode(tone(22_050), 22_050, "WAV", "PCM_U8"),
    "FLAC": encode(tone(44_100), 44_100, "FLAC"),
    "OGG Vorbis": encode(tone(44_100, channels=2), 44_100, "OGG", "VORBIS"),
    "OGG Opus": encode(tone(48_000), 48_000, "OGG", "OPUS"),
    "MP3": encode(tone(44_100), 44_100, "MP3"),
    "eight channels": encode(tone(16_000, channels=8), 16_000, "WAV", "PCM_16"),
    "a header that claims 2^31 samples": wav(SIXTEEN, claims=2**32 - 2),
}

NOT_FINITE = np.array([0.1, np.nan, 0.2] * 4000, dtype="<f4").tobytes()

BAD = {
    "nothing": (b"", "is empty"),
    "no samples": (wav(b""), "too little to hear"),
    "a blink": (wav(bytes(400)), "lasts 0.01 s"),
    "1 Hz": (wav(bytes(100), rate=1), "1 samples a second"),
    "400 kHz": (wav(SIXTEEN, rate=400_000), "400,000 samples a second"),
    "4 GHz": (wav(SIXTEEN, rate=2**32 - 1), "cut short"),
    "no channel": (wav(SIXTEEN, channels=0), "cannot be read to its end"),
    "nine channels": (encode(tone(channels=9), 16_000, "WAV"), "9 channels; at most 8"),
    "NaN": (wav(NOT_FINITE, bits=32, kind=FLOAT), "not numbers"),
    "infinite": (wav(np.full(9000, np.inf, "<f4").tobytes(), bits=32, kind=FLOAT), "not numbers"),
    "half a minute and one second": (encode(np.zeros(31 * 8000), 8000, "WAV"), "lasts 31.0 s; at most 30 s"),
    "an hour of silence, packed": (encode(np.zeros(3600 * 8000, np.int16), 8000, "FLAC"), "lasts 3,600.0 s"),
    "FLAC cut short": (GOOD["FLAC"][: len(GOOD["FLAC"]) // 2], "cut short"),
    "OGG cut short": (GOOD["OGG Vorbis"][:40], "cut short"),
    "WAV cut within its header": (GOOD["WAV in floats"][:30], "cut short"),
    "a text": (b"no sound at all", "is not a sound"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(64), "is not a sound"),
    "M4A": (b"\0\0\0\x20ftypM4A " + bytes(64), "M4A"),
    "WebM": (b"\x1a\x45\xdf\xa3" + bytes(64), "WebM"),
    "AIFF": (encode(tone(), 16_000, "AIFF"), "AIFF"),
    "AU": (encode(tone(), 16_000, "AU"), "is not a sound"),
    "WAVEX in name, a picture of nothing else": (b"RIFF\0\0\0\0WAVE", "cut short"),
    "an MP3 of nothing": (b"ID3\x04\0\0\0\0\0\0" + bytes(200), "cut short"),
}


def loudest(samples: np.ndarray) -> float:
    """The frequency that has most of it, in hertz."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(spectrum.argmax() * RATE / len(samples))


@pytest.mark.parametrize("name", GOOD)
def test_every_form_is_the_same_tone(name: str) -> None:
    sound = open_sound(GOOD[name])
    assert sound.samples.dtype == np.float32
    assert sound.seconds == pytest.approx(0.5, abs=0.06), "lossy forms pad"
    assert loudest(sound.samples) == pytest.approx(440, abs=3)
    inner = sound.samples[2000:6000]
    assert float(np.sqrt(2) * inner.std()) == pytest.approx(0.5, abs=0.03)


def test_sixteen_bits_at_the_models_rate_are_taken_as_they_are() -> None:
    numbers = np.array([0, 16384, -32768, 32767] * 800, dtype="<i2")
    assert np.array_equal(open_sound(wav(numbers.tobytes())).samples, numbers / np.float32(32768))


def test_channels_are_averaged_and_what_is_too_loud_is_cut() -> None:
    two = np.stack([np.full(3200, 0.5), np.full(3200, -0.25)], axis=1)
    assert np.allclose(open_sound(encode(two, RATE, "WAV", "FLOAT")).samples, 0.125)
    loud = open_sound(encode(np.full(3200, 7.0), RATE, "WAV", "FLOAT"))
    assert float(loud.samples.max()) == 1


@pytest.mark.attack("sounds")
@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_heard_gets_a_sentence(name: str) -> None:
    content, outcome = BAD[name]
    with bounded(), pytest.raises(SoundError, match=outcome) as refused:
        open_sound(content)
    assert str(refused.value).endswith(".")


@pytest.mark.attack("sounds")
@pytest.mark.parametrize("name", GOOD)
def test_cut_short_or_one_bit_turned_round_anywhere(name: str) -> None:
    content, random = GOOD[name], np.random.default_rng(0)
    for keep in np.linspace(0, len(content) - 1, 6).astype(int):
        opens_or_says_why(content[:keep])
    for place in random.integers(0, 8 * len(content), 12):
        spoiled = bytearray(content)
        spoiled[place // 8] ^= 1 << (place % 8)
        opens_or_says_why(bytes(spoiled))


@pytest.mark.attack("sounds")
@given(st.sampled_from(sorted(GOOD)), st.sampled_from(sorted(GOOD)), st.integers(0, 200), st.binary(max_size=64))
def test_parts_of_several_and_anything_between(first: str, second: str, cut: int, between: bytes) -> None:
    opens_or_says_why(GOOD[first][:cut] + between + GOOD[second][cut:])


def opens_or_says_why(content: bytes) -> None:
    try:
        outcome: float | str = open_sound(content).seconds
    except SoundError as refused:
        outcome = str(refused)
    assert outcome.endswith(".") if isinstance(outcome, str) else 0 < outcome <= 30.1


def test_a_host_may_allow_less() -> None:
    content = GOOD["WAV of a microphone"]
    with pytest.raises(SoundError, match="MB; a sound may have at most 0.001"):
        open_sound(content, max_bytes=1049)
    with pytest.raises(SoundError, match="at most 0.25 s"):
        open_sound(content, max_seconds=0.25)
