"""Videos, and what a model sees of pictures."""

import io
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.viz_core.images.hostile_pictures import GOOD
from viz_core.images.open_image import PictureError, as_rgb, open_picture, open_video, order_of_names
from viz_core.images.preprocessing import Preparation
from viz_core.pretrained import load_classifier
from viz_core.pretrained.samples import GARMENTS, drawn_picture

GARMENT = Preparation((28, 28), "garment", [0.25], [0.5])
PHOTO = Preparation((32, 32), "photograph", [0.5, 0.25, 0.0], [0.25, 0.5, 1.0])


def shirt(background: int, garment: int, size: tuple[int, int] = (100, 140), mode: str = "L") -> Image.Image:
    """A rectangle 40 wide and 80 high in a wide margin."""
    image = Image.new("L", size, background)
    image.paste(garment, (30, 30, 70, 110))
    return image.convert(mode)


@pytest.mark.parametrize(
    ("background", "garment", "steps"),
    [(255, 40, ("trimmed", "grey", "negated", "fitted")), (0, 215, ("trimmed", "grey", "fitted"))],
    ids=["shop photograph", "bright on black"],
)
def test_a_garment_is_bright_and_fills_the_height(background: int, garment: int, steps: tuple[str, ...]) -> None:
    prepared = GARMENT(shirt(background, garment, mode="RGB"))
    seen = np.asarray(prepared.seen).astype(int)
    assert prepared.steps == steps
    assert seen.shape == (28, 28)
    assert abs(seen[:, 8:20] - 215).max() <= 2  # 40 x 80 becomes 14 x 28, in the middle
    assert seen[:, :7].max() == seen[:, 21:].max() == 0
    torch.testing.assert_close(prepared.pixels[0, 0], (torch.from_numpy(seen).float() / 255 - 0.25) / 0.5)


def test_a_picture_in_the_models_form_is_left_as_it_is() -> None:
    array = np.zeros((28, 28), dtype=np.uint8)
    array[5:20, 3:25] = np.arange(22)
    prepared = GARMENT(Image.fromarray(array))
    assert prepared.steps == ()
    assert np.array_equal(np.asarray(prepared.seen), array)
    colour = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    found = PHOTO(Image.fromarray(colour))
    assert found.steps == ()
    expected = (torch.from_numpy(colour) / 255 - torch.tensor(PHOTO.mean)) / torch.tensor(PHOTO.std)
    torch.testing.assert_close(found.pixels[0], expected.permute(2, 0, 1))


def test_a_clear_background_counts_as_a_shops_white() -> None:
    cutout = Image.new("RGBA", (100, 140), (0, 0, 0, 0))
    cutout.paste((40, 40, 40, 255), (30, 30, 70, 110))
    assert GARMENT(cutout).steps == ("trimmed", "grey", "negated", "fitted")
    assert np.array_equal(np.asarray(GARMENT(cutout).seen), np.asarray(GARMENT(shirt(255, 40)).seen))


def test_a_photograph_is_cut_at_its_centre() -> None:
    wide = Image.new("RGB", (96, 32), (255, 0, 0))
    wide.paste((0, 255, 0), (32, 0, 64, 32))
    prepared = PHOTO(wide)
    assert prepared.steps == ("cropped",)
    assert np.asarray(prepared.seen).reshape(-1, 3).tolist() == [[0, 255, 0]] * 1024
    assert PHOTO(wide.resize((960, 320))).steps == ("cropped", "resized")


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("preparation", [GARMENT, PHOTO], ids=["garment", "photograph"])
def test_every_odd_picture_gets_the_models_form(name: str, preparation: Preparation) -> None:
    image = open_picture(GOOD[name][0])
    prepared = preparation(image)
    assert prepared.seen.size == preparation.size[::-1]
    assert prepared.pixels.shape == (1, len(preparation.mean), *preparation.size)
    assert prepared.pixels.isfinite().all()
    # Opening and preparing agree on what is up: the same picture, upright already, looks the same.
    assert np.array_equal(np.asarray(preparation(as_rgb(image)).seen), np.asarray(prepared.seen))


LABELS = {"t-shirt": "T-shirt/top", "ankle-boot": "ankle boot"}


@pytest.mark.parametrize("name", GARMENTS)
def test_the_shipped_model_names_every_garment(name: str) -> None:
    """Needs the shipped model vit-fashion-mnist."""
    found = load_classifier("vit-fashion-mnist", "cpu").classify(drawn_picture(name))
    assert found.label == LABELS.get(name, name)


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


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([still(COLOURS[0])], "at least 2 frames"),
        ([still(COLOURS[0]), still(COLOURS[0], (8, 8))], "12 x 8 and 8 x 8 pixels"),
        ([animation("GIF")[:150]], "cut short"),
        ([still(COLOURS[0]), b"%PDF-1.4"], "PDF document"),
        ([still(COLOURS[0]), animation("GIF")], "several files is an animation"),
        ([b"\0\0\0\x20ftypisom\0\0\2\0isomiso2mp41"], "This is a video file"),
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


@pytest.mark.parametrize("names", [["frame10.png", "frame2.png", "frame1.png", "Frame02b.png"]])
def test_numbers_in_names_are_in_the_order_of_numbers(names: list[str]) -> None:
    assert sorted(names, key=order_of_names) == ["frame1.png", "frame2.png", "Frame02b.png", "frame10.png"]
