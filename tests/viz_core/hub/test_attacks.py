"""Models made to harm: numbers nobody can have meant, headers that lie, links out of a folder, code and networks."""

import json
import os
import shutil
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from tests.viz_core.hub.conftest import Refused, Tiny, change
from viz_core.hub import HubError, load_hub
from viz_core.hub.runs.picture_prompt import load_video_options
from viz_core.hub.runs.pictures import PictureInput
from viz_core.hub.store import MAX_PARTS, MAX_TOKENS, check_processor, check_tokenizer, files
from viz_core.hub.store.files import LocalModel, check_config, local_models, read_licence

pytestmark = pytest.mark.attack("models")
MB = 2**20


BILLION = 10**9
TOO_MUCH = {
    "bert": "num_hidden_layers num_attention_heads num_labels vocab_size hidden_size type_vocab_size",
    "gpt2": "n_layer n_positions",
    "t5": "num_layers relative_attention_num_buckets",
    "vit": "image_size intermediate_size",
}
# Absurd numbers are found however deep; real ones pass.
CHECKS: list[tuple[Callable[[dict[str, Any]], object], list[dict[str, Any]], list[dict[str, Any]]]] = [
    (
        lambda config: check_config({"model_type": "bert", **config}, "x"),
        [
            {"text_config": {"num_hidden_layers": BILLION}},
            {"vision_config": {"encoder": {"depths": [2, 2, BILLION]}}},
            {"attention_types": [[["global", "local"], BILLION]]},
            {"block_groups": [1, [2, [10_001]]]},
        ],
        [
            {"rope_theta": 500_000_000, "vocab_size": 256_000, "max_position_embeddings": 10_485_760},
            {"num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "num_experts": 512},
            {"id2label": {str(n): "x" for n in range(21_843)}, "num_labels": 21_843 // 3, "model_max_length": 1e30},
        ],
    ),
    (
        lambda config: check_tokenizer(config, "tokenizer_config.json", "x"),
        [
            {"extra_ids": BILLION},
            {"num_extra_tokens": MAX_PARTS + 1},
            {"deep": [{"offset": [BILLION]}]},
            {"many": [*range(MAX_TOKENS + 2)]},
        ],
        [{"model_max_length": 1e30, "extra_ids": 100, "added_tokens_decoder": {"50256": {"lstrip": False}}}],
    ),
    (
        lambda config: check_processor(config, "preprocessor_config.json", "x"),
        [
            {"crop_size": {"height": 60_000, "width": 60_000}, "do_center_crop": True},
            {"size": 10**9},
            {"min_pixels": 10**10},
            {"video_processor": {"merge_size": 2}, "image_processor": {"size": {"longest_edge": 10**6}}},
        ],
        [
            {"size": {"height": 384, "width": 384}, "image_mean": [0.5], "rescale_factor": 1 / 255, "resample": 3},
            {"min_pixels": 3136, "max_pixels": 12_845_056, "merge_size": 2, "size": {"longest_edge": 12_845_056}},
            {"image_grid_pinpoints": [[336, 672], [1344, 336]], "crop_size": 336},
            {"feature_size": 80, "n_samples": 480_000, "nb_max_frames": 3000, "sampling_rate": 16_000},
        ],
    ),
]


@pytest.mark.parametrize(("check", "absurd", "real"), CHECKS, ids=["config", "tokenizer", "processor"])
def test_absurd_numbers_are_found_however_deep_and_real_ones_pass(check: Any, absurd: Any, real: Any) -> None:
    for config in absurd:
        with pytest.raises(HubError, match="cannot be right"):
            check(config)
    for config in real:
        check(config)


@pytest.mark.parametrize("file", ["tokenizer_config.json", "added_tokens.json", "generation_config.json"])
def test_every_file_of_settings_is_checked(file: str, copy: Tiny, refused: Refused) -> None:
    path = copy("bert")
    (path / file).write_text(json.dumps({"max_new_tokens": BILLION, "extra_ids": BILLION, "<a>": BILLION}))
    assert file in refused(path)


CARDS = {
    "---\nlicense: apache-2.0\n---\n# A model": "apache-2.0",
    "---\ntags: [a]\nlicense:\n- mit\n- cc0-1.0\n---\n": "mit, cc0-1.0",
    "# A model\n---\nlicense: mit\n---": "",
    "---\na: &a [x, x]\nb: &b [*a, *a]\nlicense: *b\n---\n": "*b",
    "---\nlicense: " + "m" * 10_000 + "\n---\n": "m" * 80,
}


@pytest.mark.parametrize("card", CARDS, ids=range(len(CARDS)))
def test_a_licence_is_one_short_line_of_a_card(card: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(card, encoding="utf-8", newline="")
    assert read_licence(tmp_path) == CARDS[card]


@pytest.mark.parametrize(
    ("family", "field"), [(name, each) for name, some in TOO_MUCH.items() for each in some.split()]
)
def test_a_config_that_asks_for_much(family: str, field: str, copy: Tiny, refused: Refused) -> None:
    refused(change(copy(family) / "config.json", **{field: BILLION}), memory_budget=200 * MB)


def test_very_many_tensors_and_texts_are_too_much(
    copy: Tiny, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copy("bert")
    file, many = path / "model.safetensors", {f"t{number}": torch.zeros(1) for number in range(files._MAX_TENSORS)}
    save_file(load_file(file) | many, file, metadata={"format": "pt"})
    refused(path)
    monkeypatch.setattr(files, "_MAX_TEXTS", 10)
    assert "too large" in refused(copy("gpt2"))
    monkeypatch.setattr(files, "_MAX_CONFIG", 10)
    (path / "video_preprocessor_config.json").write_text(json.dumps({"size": {"shortest_edge": 4}}))
    with pytest.raises(HubError, match="is damaged"):
        load_video_options(LocalModel("x", "folder", path, "", "qwen2_vl", 0))


def test_weights_that_are_no_numbers_are_named(copy: Tiny) -> None:
    path = copy("bert")
    assert load_hub(path, device="cpu").card.not_finite == ()
    weights = load_file(path / "model.safetensors")
    name = next(each for each in weights if "query.weight" in each)
    weights[name][0, 0] = torch.nan
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    (found,) = load_hub(path, device="cpu").card.not_finite
    assert found.endswith("query.weight")


def header(*tensors: tuple[str, list[int], tuple[int, int]], extra: bytes = b"") -> bytes:
    parts = [json.dumps(n) + ":" + json.dumps({"dtype": "F32", "shape": s, "data_offsets": o}) for n, s, o in tensors]
    text = ("{" + ",".join(parts) + "}").encode() + extra
    return struct.pack("<Q", len(text)) + text


WEIGHTS = {
    "nothing": b"",
    "a header of 2^63 bytes": struct.pack("<Q", 2**63) + b"{}",
    "a header of 90 MB that is not there": struct.pack("<Q", 90 * MB) + b"{}",
    "a header longer than the file": struct.pack("<Q", 1000) + b"{}",
    "offsets beyond the file": header(("a", [2**40], (0, 2**42))) + bytes(4),
    "a header that is no JSON": struct.pack("<Q", 4) + b"\xff\xfe{}",
    "overlapping tensors": header(("a", [2], (0, 8)), ("b", [2], (4, 12))) + bytes(12),
    "a shape that overflows": header(("a", [2**32, 2**32, 2], (0, 4))) + bytes(4),
    "a pickle by this name": b"\x80\x04\x95\x1a\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
}


@pytest.mark.parametrize("what", WEIGHTS)
def test_weights_that_lie(what: str, copy: Tiny, refused: Refused) -> None:
    path = copy("bert")
    (path / "model.safetensors").write_bytes(WEIGHTS[what])
    refused(path)


FIELDS = {
    "a kernel from elsewhere": {"attn_implementation": "kernels-community/flash-attn"},
    "the same, within": {"_attn_implementation": "kernels-community/flash-attn"},
    "the same, as it was saved": {"_attn_implementation_internal": "kernels-community/flash-attn"},
    "a name that is an address": {"_name_or_path": "https://elsewhere.example/model"},
    "weights from elsewhere": {"transformers_weights": "https://elsewhere.example/model.safetensors"},
    "an adapter": {"adapter": "https://elsewhere.example", "base_model_name_or_path": "x/y"},
    "a tokenizer from elsewhere": {"tokenizer_class": "https://elsewhere.example/x.py"},
    "code of another's beside a known kind": {"auto_map": {"AutoModel": "elsewhere/repo--code.Model"}},
    "code of its own beside a known kind": {"auto_map": {"AutoModel": "code.Model", "AutoConfig": "code.Config"}},
}


@pytest.mark.parametrize("what", FIELDS)
def test_no_field_of_a_config_asks_a_network(what: str, copy: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((socket.socket, "connect"), (socket, "getaddrinfo")):
        monkeypatch.setattr(owner, name, lambda *_, **__: pytest.fail("a network was asked"))
    path = change(copy("bert") / "config.json", **FIELDS[what])
    change(path / "tokenizer_config.json", auto_map={"AutoTokenizer": ["code.Tokens", "code.Tokens"]})
    marker = path.parent / "ran"
    (path / "code.py").write_text(f"open({str(marker)!r}, 'w')")
    with suppress(HubError):
        load_hub(path, device="cpu")
    assert not marker.exists()


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.complex64, torch.float8_e8m0fnu])
def test_matrices_of_a_type_without_a_meaning_are_refused_and_masks_are_not(
    dtype: torch.dtype, copy: Tiny, refused: Refused
) -> None:
    path = copy("bert")
    file = path / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, "embeddings.position_ids": torch.arange(9), "attn.bias": torch.ones(2, 2) > 0}, file)
    load_hub(path, device="cpu")
    name = next(name for name, tensor in tensors.items() if name.endswith("weight") and tensor.dim() == 2)
    save_file({**tensors, name: tensors[name].to(dtype)}, file)
    assert name[:60] in refused(path, "type without a meaning")


FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "endless"])
def test_a_pipe_or_a_device_is_not_read(make: Callable[[Path], None], file: str, copy: Tiny, refused: Refused) -> None:
    path = copy("bert")
    assert "bert" in [model.name for model in local_models([path])]
    (path / file).unlink()
    make(path / file)
    assert f"{file} in the folder of bert is a link out of it, or no file." in refused(path)
    assert file != "config.json" or "bert" not in [model.name for model in local_models([path])]


@pytest.mark.parametrize("link", ["README.md", "model.safetensors", "config.json", "additional_chat_templates/x.jinja"])
def test_a_link_to_a_file_elsewhere(link: str, copy: Tiny, tmp_path: Path, refused: Refused) -> None:
    path = copy("bert")
    (tmp_path / "secret").write_text("root:x:0:0")
    (path / link).parent.mkdir(exist_ok=True)
    (path / link).unlink(missing_ok=True)
    (path / link).symlink_to(tmp_path / "secret")
    message = refused(path)
    assert Path(link).name in message
    assert "root" not in message


def test_links_of_the_hubs_cache_are_its_own_files(copy: Tiny, tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "models--x" / "blobs", tmp_path / "models--x" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    shutil.copytree(copy("bert"), blobs)
    for file in blobs.iterdir():
        (snapshot / file.name).symlink_to(Path("..") / ".." / "blobs" / file.name)
    assert load_hub(snapshot, device="cpu").run("hello").tokens


def test_a_line_of_a_picture_is_not_made_large() -> None:
    by_shorter = PictureInput(SimpleNamespace(size={"shortest_edge": 224}), (16, 16), registers=False)
    with pytest.raises(HubError, match="too long and narrow"):
        by_shorter.encode(Image.new("RGB", (30_000, 2)))
