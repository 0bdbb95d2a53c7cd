"""Videos in: frames and times of animations and of several pictures, and a sentence for what cannot be one."""

import io
from typing import Any

import pytest
from PIL import Image

from viz_core.images.open_image import PictureError, open_picture
from viz_core.images.video import Video, open_video, order_of_names

COLOURS = [(250, 0, 0), (0, 250, 0), (0, 0, 250), (250, 250, 0)]


def still(colour: tuple[int, int, int], size: tuple[int, int] = (12, 8), name: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, name)
    return file.getvalue()


def animation(name: str, count: int = 4, **options: Any) -> bytes:
    file = io.BytesIO()
    frames = [Image.new("RGB", (12, 8), COLOURS[i % 4]) for i in range(count)]
    frames[0].save(file, name, save_all=True, append_images=frames[1:], **options)
    return file.getvalue()


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
def test_frames_and_times_of_an_animation(name: str) -> None:
    found = open_video(
        [animation(name, duration=[100, 300, 200, 400], **({"lossless": True} if name == "WEBP" else {}))]
    )
    assert [frame.getpixel((3, 3)) for frame in found.frames] == COLOURS
    assert found.times == pytest.approx((0, 0.1, 0.4, 0.6))
    assert found.seconds == pytest.approx(1.0)


def test_a_long_animation_is_sampled_evenly_from_first_to_last() -> None:
    found = open_video([animation("GIF", 30, duration=50)], max_frames=5)
    assert found.times == pytest.approx([0.05 * i for i in (0, 7, 14, 22, 29)])
    assert found.seconds == pytest.approx(1.5)


def test_frames_without_a_duration_last_a_tenth_of_a_second() -> None:
    assert open_video([animation("GIF", 3)]).times == pytest.approx((0, 0.1, 0.2))


def test_pictures_are_frames_one_a_second() -> None:
    found = open_video([still(COLOURS[0]), still(COLOURS[1], name="JPEG"), still(COLOURS[2], name="GIF")])
    assert found.times == (0, 1, 2)
    assert found.seconds == 3
    assert found.frames[0].getpixel((3, 3)) == COLOURS[0]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([still(COLOURS[0])], "at least 2 frames"),
        ([still(COLOURS[0]), still(COLOURS[0], (8, 8))], "12 x 8 and 8 x 8 pixels"),
        ([b""], "empty"),
        ([animation("GIF")[:150]], "cut short"),
        ([still(COLOURS[0]), b"%PDF-1.4"], "PDF document"),
        ([still(COLOURS[0]), animation("GIF")], "several files is an animation"),
        ([animation("WEBP"), animation("WEBP")], "several files is an animation"),
        ([b"\0\0\0\x20ftypisom\0\0\2\0isomiso2mp41"], "This is a video file"),
        ([b"\x1a\x45\xdf\xa3\x01\0\0\0\0\0\0\x1fB\x86\x81\x01webm"], "This is a video file"),
    ],
)
def test_what_is_no_video_is_a_sentence(files: list[bytes], message: str) -> None:
    with pytest.raises(PictureError, match=message):
        open_video(files)


def test_limits_count_all_frames_together() -> None:
    with pytest.raises(PictureError, match="more than 0.0003 megapixels together"):
        open_video([animation("GIF")], max_pixels=300)
    assert len(open_video([animation("GIF")], max_pixels=4 * 96).frames) == 4
    with pytest.raises(PictureError, match="a video may have at most"):
        open_video([still(COLOURS[0])] * 2, max_bytes=len(still(COLOURS[0])) + 1)
    with pytest.raises(PictureError, match="more than 1,000 frames"):
        open_video([animation("GIF", 1002, duration=20)])


def test_frames_given_as_pictures() -> None:
    frames = [Image.new("L", (4, 4), 9), Image.new("RGBA", (4, 4))]
    found = Video.of(frames, fps=4)
    assert [frame.mode for frame in found.frames] == ["RGB", "RGB"]
    assert (found.times, found.seconds) == ((0, 0.25), 0.5)


@pytest.mark.parametrize("fps", [0, -1, float("nan")])
def test_a_rate_of_frames_is_above_0(fps: float) -> None:
    with pytest.raises(ValueError, match="fps: expected"):
        Video.of([Image.new("L", (4, 4))] * 2, fps=fps)


def test_a_picture_that_ends_before_its_first_frame_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> None:
        raise EOFError

    monkeypatch.setattr("PIL.GifImagePlugin.GifImageFile.load", end)
    with pytest.raises(PictureError, match="cut short"):
        open_picture(still(COLOURS[0], name="GIF"))


@pytest.mark.parametrize("names", [["frame10.png", "frame2.png", "frame1.png", "Frame02b.png"]])
def test_numbers_in_names_are_in_the_order_of_numbers(names: list[str]) -> None:
    assert sorted(names, key=order_of_names) == ["frame1.png", "frame2.png", "Frame02b.png", "frame10.png"]
