"""Folders of models made to harm: pipes, devices, links, processors of huge pictures, tokenizers that grow a text."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from tests.viz_core.bounded import bounded
from viz_core.hub import HubError, load_hub
from viz_core.hub.load import import_transformers
from viz_core.hub.runs.picture_prompt import load_video_options
from viz_core.hub.runs.pictures import PictureInput
from viz_core.hub.store.checks import check_processor
from viz_core.hub.store.files import LocalModel, check_regular, local_models

pytestmark = pytest.mark.attack("models")
Tiny = Callable[[str], Path]
Refused = Callable[[Path], str]


@pytest.fixture
def copy(tiny: Tiny, tmp_path: Path) -> Tiny:
    return lambda family: Path(shutil.copytree(tiny(family), tmp_path / family))


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    import_transformers()


@pytest.fixture
def refused() -> Refused:
    def load(path: Path) -> str:
        with bounded(), pytest.raises(HubError) as error:
            load_hub(path, device="cpu")
        return str(error.value)

    return load


def pipe(path: Path) -> None:
    """A named pipe. Whoever reads it gets nothing after a second, so that a test fails instead of waiting."""
    path.unlink()
    os.mkfifo(path)

    def end() -> None:
        for _ in range(20):
            time.sleep(1)
            with suppress(OSError):
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))

    threading.Thread(target=end, daemon=True).start()


def endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("make", [pipe, endless])
def test_a_pipe_or_a_device_is_not_read(make: Callable[[Path], None], file: str, copy: Tiny, refused: Refused) -> None:
    path = copy("bert")
    make(path / file)
    assert f"{file} in the folder of bert is a link out of it, or no file." in refused(path)


@pytest.mark.parametrize("make", [pipe, endless])
def test_neither_is_it_where_models_are_listed(make: Callable[[Path], None], copy: Tiny) -> None:
    path = copy("bert")
    assert "bert" in [model.name for model in local_models([path])]
    make(path / "config.json")
    assert "bert" not in [model.name for model in local_models([path])]


@pytest.mark.parametrize("link", ["README.md", "vocab.txt", "additional_chat_templates/x.jinja"])
def test_a_link_to_a_file_elsewhere(link: str, copy: Tiny, tmp_path: Path, refused: Refused) -> None:
    path = copy("bert")
    (tmp_path / "secret").write_text("root:x:0:0")
    (path / link).parent.mkdir(exist_ok=True)
    (path / link).unlink(missing_ok=True)
    (path / link).symlink_to(tmp_path / "secret")
    assert Path(link).name in refused(path)


def test_links_of_the_hubs_cache_are_its_own_files(copy: Tiny, tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "models--x" / "blobs", tmp_path / "models--x" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, file in enumerate(copy("bert").iterdir()):
        (blobs / str(number)).write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(Path("..") / ".." / "blobs" / str(number))
    check_regular(snapshot, "x")
    assert load_hub(snapshot, device="cpu").run("hello").tokens


def change(path: Path, **fields: object) -> Path:
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, **fields}))
    return path.parent


SIZES: list[dict[str, Any]] = [
    {"crop_size": {"height": 60_000, "width": 60_000}, "do_center_crop": True},
    {"size": {"height": 60_000, "width": 60_000}},
    {"size": 10**9},
    {"size": {"shortest_edge": 10**6}},
    {"min_pixels": 10**10},
    {"image_processor": {"size": {"height": 10**6, "width": 1}}},
]


@pytest.mark.parametrize("fields", SIZES, ids=str)
def test_a_processor_of_huge_pictures(fields: dict[str, Any], copy: Tiny, refused: Refused) -> None:
    path = change(copy("vit") / "preprocessor_config.json", **fields)
    assert "The preprocessor_config.json of vit cannot be right: " in refused(path)


@pytest.mark.parametrize(
    "config",
    [
        {"size": {"height": 384, "width": 384}, "image_mean": [0.5], "rescale_factor": 1 / 255, "resample": 3},
        {"min_pixels": 3136, "max_pixels": 12_845_056, "merge_size": 2, "size": {"longest_edge": 12_845_056}},
        {"image_grid_pinpoints": [[336, 672], [1344, 336]], "crop_size": 336},
        {"size": {"longest_edge": 2048}, "max_image_size": {"longest_edge": 512}},
        {"video_processor": {"merge_size": 2, "size": {"longest_edge": 25_165_824}}, "image_processor": {"size": 384}},
        {"feature_size": 80, "n_samples": 480_000, "nb_max_frames": 3000, "sampling_rate": 16_000},
    ],
    ids=str,
)
def test_processors_of_real_models_pass(config: dict[str, Any]) -> None:
    check_processor(config, "preprocessor_config.json", "x")


def test_a_merge_size_counts_in_its_own_part_alone() -> None:
    parts = {"video_processor": {"merge_size": 2}, "image_processor": {"size": {"longest_edge": 10**6}}}
    with pytest.raises(HubError, match="longest_edge is 1,000,000"):
        check_processor(parts, "processor_config.json", "x")


def test_sizes_of_videos_are_checked_as_those_of_pictures(copy: Tiny, refused: Refused) -> None:
    path = copy("qwen2_vl")
    (path / "video_preprocessor_config.json").write_text(json.dumps({"size": {"shortest_edge": 10**8}}))
    assert "The video_preprocessor_config.json of qwen2_vl cannot be right: " in refused(path)


def test_options_of_videos_are_read_within_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz_core.hub.store.files._MOST_JSON", 10)
    (tmp_path / "video_preprocessor_config.json").write_text(json.dumps({"size": {"shortest_edge": 4}}))
    with pytest.raises(HubError, match="is damaged"):
        load_video_options(LocalModel("x", "folder", tmp_path, "", "qwen2_vl", 0))


def test_a_line_of_a_picture_is_not_made_large() -> None:
    """By a processor that brings the shorter side to the model's."""
    by_shorter = PictureInput(SimpleNamespace(size={"shortest_edge": 224}), (16, 16), registers=False)
    with pytest.raises(HubError, match="too long and narrow"):
        by_shorter.encode(Image.new("RGB", (30_000, 2)))


def grows(letter: str, times: int) -> dict[str, Any]:
    doubled = {"type": "Replace", "pattern": {"String": letter}, "content": letter * 2}
    return {"type": "Sequence", "normalizers": [doubled] * times}


@pytest.mark.parametrize(("letter", "times"), [("a", 30), ("ж", 30), ("a", 6), ("ß", 12)])
def test_a_tokenizer_that_grows_a_text(letter: str, times: int, copy: Tiny, refused: Refused) -> None:
    """30 doublings of one letter took minutes and gigabytes of the process that loads models."""
    path = change(copy("bert") / "tokenizer.json", normalizer=grows(letter, times))
    assert "takes too long" in refused(path)


def test_a_decoder_that_grows_a_text(copy: Tiny, refused: Refused) -> None:
    decoder = {"type": "Sequence", "decoders": grows("a", 30)["normalizers"]}
    assert "takes too long" in refused(change(copy("bert") / "tokenizer.json", decoder=decoder))


def test_a_tokenizer_that_doubles_a_text_is_taken(copy: Tiny) -> None:
    path = change(copy("bert") / "tokenizer.json", normalizer=grows("a", 1))
    assert load_hub(path, device="cpu").run("hello").tokens
