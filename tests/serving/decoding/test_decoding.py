"""Visitors' files are decoded in a process of their own, which ends at its limits."""

import threading
import time
from functools import cache

import numpy as np
import pytest
from PIL import Image

from serving.compute.slots import BusyError
from serving.decoding import child
from serving.decoding import files as process
from serving.decoding.child import preview
from serving.decoding.files import decode_picture, decode_preview, decode_sound, decode_video
from tests.viz_core.hostile import bounded, secret, sleeper
from tests.viz_core.images.hostile_pictures import GOOD, encode
from tests.viz_core.images.test_open_image import BLUE, GREEN, RED, WHITE, corners, similar
from tests.viz_core.images.test_preprocessing import COLOURS, animation, still
from ui.compute.pictures import read_video
from viz_core.images.open_image import PictureError, as_rgb, open_picture, open_video
from viz_core.runtime.hooks import interruptible
from viz_core.runtime.limited_process import LimitError, Limits, run_limited
from viz_core.sounds.open_sound import SoundError

MB = 2**20
LARGE = (8000, 5000)


@cache
def large(mode: str) -> bytes:
    return encode(Image.new(mode, LARGE), "PNG")


@pytest.mark.parametrize("name", GOOD)
def test_a_picture_is_the_one_that_the_library_opens(name: str) -> None:
    content = GOOD[name][0]
    expected = open_picture(content)
    found = decode_picture(content)
    assert found.mode in ("L", "RGB")
    assert np.array_equal(np.asarray(as_rgb(found)), np.asarray(as_rgb(expected)))
    small, size = decode_preview(content)
    assert size == expected.size
    assert np.array_equal(np.asarray(small), np.asarray(preview(expected)))
    tiny = preview(expected, 16)
    assert (tiny.mode, max(tiny.size)) == ("RGB", min(16, max(size)))
    if name == "rotated photo":
        assert all(map(similar, corners(tiny), (RED, GREEN, BLUE, WHITE)))


@pytest.mark.parametrize("files", [[animation("GIF", 12, duration=40)], [still(colour) for colour in COLOURS[:3]]])
def test_a_video_is_the_one_that_the_library_opens(files: list[bytes]) -> None:
    found, expected = decode_video(files), open_video(files)
    assert (found.times, found.seconds) == (expected.times, expected.seconds)
    for frame, other in zip(found.frames, expected.frames, strict=True):
        assert np.array_equal(np.asarray(frame), np.asarray(other))


@pytest.mark.parametrize("files", [[bytes(6 * MB), bytes(6 * MB)], [bytes(11 * MB)]])
def test_files_too_large_together_are_neither_sent_nor_hashed(
    files: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serving.decoding.files.decode", lambda *_: pytest.fail("sent"))
    monkeypatch.setattr("ui.compute.pictures.hashlib.sha256", lambda: pytest.fail("hashed"))
    for read in (decode_video, read_video):
        with pytest.raises(PictureError, match="a video may have at most 10"):
            read(files)


def test_refusals_keep_their_sentence_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PictureError) as refused:
        decode_picture(b"%PDF-1.7")
    with pytest.raises(PictureError) as expected:
        open_picture(b"%PDF-1.7")
    assert refused.value.sentence == expected.value.sentence
    assert refused.value.values == expected.value.values
    with pytest.raises(SoundError, match="This file is empty"):
        decode_sound(b"")
    monkeypatch.setenv("ATLAS_MAX_MEGAPIXELS", "0.0002")
    with pytest.raises(PictureError, match=r"more than 0.0002 megapixels together"):
        decode_video([animation("GIF")])


@pytest.mark.attack("pictures")
def test_a_jpeg_of_many_scans_is_refused_before_it_is_decoded() -> None:
    """A grey progressive JPEG whose last scan is there forty times."""
    file = encode(Image.new("L", (6300, 6300), 128), "JPEG", progressive=True)
    start, end = file.rindex(b"\xff\xda"), file.rindex(b"\xff\xd9")
    content = file[:end] + file[start:end] * 40 + file[end:]
    with bounded(), pytest.raises(PictureError, match="more than 32 passes"):
        decode_picture(content)


@pytest.mark.attack("pictures")
def test_forty_megapixels_take_no_memory_of_the_pages() -> None:
    """A small file; several of them held gigabytes in the process of the pages."""
    content = large("RGBA")
    assert len(content) < MB / 4
    with bounded():
        small, size = decode_preview(content)
    assert size == LARGE
    assert max(small.size) == 512


@pytest.mark.attack("pictures")
@pytest.mark.parametrize(
    ("limits", "reason"),
    [(Limits(memory=300 * MB), "too much memory"), (Limits(cpu_seconds=0), "more than"), (Limits(output=10), "more")],
    ids=["memory", "time", "output"],
)
def test_what_exceeds_a_limit_is_a_sentence(limits: Limits, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "Limits", lambda *_: limits)
    with pytest.raises(PictureError, match=reason):
        decode_picture(large("RGBA"))


@pytest.mark.attack("pictures")
def test_a_few_are_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, lock = 0, 0, threading.Lock()

    def slowly(*_args: object) -> bytes:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1
        return b'["L", [1, 1]]\n\0'

    monkeypatch.setattr(process, "run_limited", slowly)
    threads = [threading.Thread(target=decode_picture, args=(b"",)) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert most == process.AT_ONCE
    monkeypatch.setattr(process, "_WAIT", 0)
    monkeypatch.setattr(process, "_places", threading.BoundedSemaphore(1))
    assert process._places.acquire()
    with pytest.raises(BusyError):
        decode_picture(b"")


def test_a_process_ends_with_its_clock_and_with_the_visitor(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LimitError):
        run_limited(sleeper, b"", limits=Limits(seconds=1))

    def gone() -> None:
        raise KeyError("gone")

    with interruptible(gone), pytest.raises(KeyError):
        run_limited(sleeper, b"", limits=Limits())
    for function in (child.picture, child.sound):  # what fails otherwise is no result
        with pytest.raises(LimitError):
            run_limited(function, b"x", ("no", "numbers"))
    monkeypatch.setenv("SECRET", "secret")  # settings of the server are not in the process
    assert run_limited(secret, b"") == b"none"
