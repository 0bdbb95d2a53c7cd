"""Sounds as people really bring them, made on the spot: good ones in odd forms, broken ones, and what is none."""

import io
import struct

import numpy as np
import soundfile

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
