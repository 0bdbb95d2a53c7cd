"""From the Hub to the cache, and from a pickle of weights to safetensors."""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from huggingface_hub import constants
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from tests.viz_core.hub.conftest import Tiny, change
from tests.viz_core.hub.fake_hub import COMMIT, FakeHub, serving, use_only
from viz_core.hub import HubError, check_name, check_revision, load_hub, local_models
from viz_core.hub.store.convert import convert
from viz_core.hub.store.download import fetch

EXTRA = dict.fromkeys(("pytorch_model.bin", "modeling_mine.py", "onnx/model.onnx", "tf_model.h5"), b"x")


@pytest.fixture
def with_llama(monkeypatch: pytest.MonkeyPatch, tiny: Tiny) -> Iterator[FakeHub]:
    fake = FakeHub()
    files = {file.name: file.read_bytes() for file in tiny("llama").iterdir()}
    fake.repos["someone/llama"] = files | EXTRA | {"video_preprocessor_config.json": b"{}"}
    with serving(fake) as address:
        use_only(address, monkeypatch)
        yield fake


def refused(name: str, why: str, **options: Any) -> None:
    with pytest.raises(HubError, match=why):
        load_hub(name, device="cpu", **options)


def test_a_model_comes_from_the_hub_pinned_to_its_commit(with_llama: FakeHub) -> None:
    seen: list[tuple[int, int]] = []
    model = load_hub("someone/llama", device="cpu", progress=lambda come, total: seen.append((come, total)))
    assert (model.card.name, model.card.source, model.card.revision) == ("someone/llama", "hub", COMMIT)
    files = with_llama.repos["someone/llama"]
    assert with_llama.downloads() == set(files) - set(EXTRA)
    wanted = sum(len(content) for file, content in files.items() if file not in EXTRA)
    assert {total for _, total in seen} == {wanted}
    assert wanted - len(files["config.json"]) <= seen[-1][0] <= wanted


def test_what_an_ended_download_left_is_deleted_and_what_still_comes_is_not(with_llama: FakeHub) -> None:
    blobs = Path(constants.HF_HUB_CACHE, "models--someone--llama", "blobs")
    blobs.mkdir(parents=True)
    for name in ("a.1.incomplete", "b.2.incomplete"):
        (blobs / name).write_bytes(b"part")
    os.utime(blobs / "a.1.incomplete", (0, time.time() - 600))
    fetch("someone/llama")
    assert [file.name for file in blobs.glob("*.incomplete")] == ["b.2.incomplete"]


def test_what_came_once_is_there_without_a_network(with_llama: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch("someone/llama")
    listed = {model.name: model for model in local_models()}["someone/llama"]
    assert (listed.source, listed.revision, listed.model_type) == ("cache", COMMIT, "llama")
    requests = len(with_llama.requests)
    assert load_hub("someone/llama", device="cpu", offline=True).card.revision == COMMIT
    assert load_hub("someone/llama", COMMIT, device="cpu", offline=True).card.revision == COMMIT
    refused("someone/llama", "switched off here, and someone/llama@v9 is not", revision="v9", offline=True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load_hub("someone/llama", device="cpu").card.revision == COMMIT
    assert len(with_llama.requests) == requests


def test_a_hub_that_is_gone_or_ill_or_not_asked(with_llama: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    refused("someone/llama", "Downloads are switched off here, and someone/llama is not in this", offline=True)
    assert with_llama.requests == []
    with_llama.errors["someone/ill"] = (500, "")
    refused("someone/ill", "cannot be reached now, and someone/ill is not in this machine's cache")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # where nobody listens
    refused("someone/llama", "cannot be reached now, and someone/llama is not in this machine's cache")


def test_missing_private_and_gated(with_llama: FakeHub) -> None:
    for status, code, why in (
        (404, "RepoNotFound", "no model someone/x on the Hub, or it is private"),
        (401, "RepoNotFound", "no model someone/x on the Hub, or it is private"),
        (403, "GatedRepo", "accept terms first"),
    ):
        with_llama.errors["someone/x"] = (status, code)
        refused("someone/x", why)
    refused("someone/llama", "has no revision 'v9'", revision="v9")
    assert load_hub("someone/llama", "v1", device="cpu").card.revision == COMMIT


def test_what_cannot_be_used_is_refused_before_its_weights_come(with_llama: FakeHub) -> None:
    with_llama.repos["someone/pickles"] = {"config.json": b'{"model_type": "bert"}', "pytorch_model.bin": b"x" * 1000}
    refused("someone/pickles", "only as a pickle")
    assert with_llama.downloads() == set()
    refused("someone/llama", "needs about .* of memory; 1.0 kB are allowed", memory_budget=1000)
    assert with_llama.downloads() == {"config.json"}


def test_nobodys_token_is_used_where_the_host_says_so(with_llama: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_host")
    fetch("someone/llama", token=False)
    assert with_llama.tokens == {None}


def test_names_and_revisions_as_the_hub_gives_them(tiny: Tiny, tmp_path: Path) -> None:
    for name in ("gpt2", "google-bert/bert-base-uncased", "Helsinki-NLP/opus-mt-en-fr", "x/y_1.5", " gpt2 "):
        assert check_name(name) == name.strip()
    for revision in ("main", "v1.0", "refs/pr/3", "main\n", COMMIT, None, "", "  "):
        assert check_revision(revision) == ((revision or "").strip() or None)
    (tmp_path / "empty").mkdir()
    (tmp_path / "mine").symlink_to(tiny("bert"))
    found = {model.name: model for model in local_models([tmp_path, tiny("gpt2"), tmp_path / "missing"])}
    assert (found["mine"].model_type, found["gpt2"].source, "empty" in found) == ("bert", "folder", False)
    assert found["gpt2"].nbytes == (tiny("gpt2") / "model.safetensors").stat().st_size


HOSTILE = {
    "Type the name": ["", "   "],
    "is an address": ["https://huggingface.co/gpt2", "huggingface.co/gpt2", "file:///etc/passwd"],
    "is a path": ["/etc/passwd", "../secret", "a/../b", "./model", "~/m", "C:\\models", "C:/models", "a\\b", "a/b/c"],
    "is not a model's name": ["a b", "-rf", "a--b", "owner/model.git", "models\0/x", "<script>", "a" * 200, "😀"],
    "is not a revision": ["../main", "a b", "-x", "a//b", "x" * 200, "?ref=1"],
}


@pytest.mark.attack("names of models")
@pytest.mark.parametrize("why", HOSTILE)
def test_what_is_no_name_or_revision_is_one_sentence(why: str) -> None:
    for typed in HOSTILE[why]:
        with pytest.raises(HubError, match=why) as error:
            check_revision(typed) if why == "is not a revision" else check_name(typed)
        assert len(str(error.value)) < 300
        assert not {"\0", "\n"} & {*str(error.value)}


@pytest.mark.attack("names of models")
@settings(max_examples=40)
@given(st.text(max_size=60))
def test_whatever_is_typed_is_a_plain_name_or_an_error(typed: str) -> None:
    try:
        name = check_name(typed)
    except HubError:
        return
    assert ".." not in name
    assert not Path(name).is_absolute()
    assert re.fullmatch(r"[\w./-]+", name, re.ASCII)


def pickled(path: Path) -> dict[str, Tensor]:
    tensors = load_file(path / "model.safetensors")
    torch.save(tensors, path / "pytorch_model.bin")
    (path / "model.safetensors").unlink()
    return tensors


def test_a_converted_folder_has_the_same_weights_and_files(copy: Tiny, tmp_path: Path) -> None:
    path = copy("bert")
    tensors = pickled(path)
    (path / "LICENSE").write_text("MIT")
    (path / "training_args.bin").write_bytes(b"x")
    out = convert(path, tmp_path / "out" / "bert")
    found = load_file(out / "model.safetensors")
    assert list(found) == sorted(tensors)
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    with pytest.raises(HubError, match=r"model.safetensors is in bert already: nothing was written"):
        convert(path, tmp_path / "out" / "bert")
    files = {file.name for file in out.iterdir()}
    assert {"config.json", "tokenizer.json", "LICENSE", "model.safetensors"} <= files
    assert not {name for name in files if name.endswith((".bin", ".part"))}
    assert load_hub(out, device="cpu").run("The cat sat.").trace.sites


def test_parts_become_parts(copy: Tiny) -> None:
    path = copy("bert")
    tensors = pickled(path)
    (path / "pytorch_model.bin").unlink()
    places = {}
    for number, names in enumerate((sorted(tensors)[::2], sorted(tensors)[1::2]), start=1):
        file = f"pytorch_model-0000{number}-of-00002.bin"
        torch.save({name: tensors[name] for name in names}, path / file)
        places |= dict.fromkeys(names, file)
    index = path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    assert convert(path) == path
    assert load_hub(path, device="cpu").card.num_parameters == sum(tensor.numel() for tensor in tensors.values())
    (path / "pytorch_model-00002-of-00002.bin").unlink()
    with pytest.raises(HubError, match="lacks a part of its weights, pytorch_model-00002"):
        convert(path, overwrite=True)
    for shard in ("../../secret.safetensors", "/etc/passwd", 5, None, "model-00003-of-00002.safetensors"):
        change(path / "model.safetensors.index.json", weight_map={"a": shard})
        with pytest.raises(HubError, match="lacks a part of its weights"):
            load_hub(path, device="cpu")


def test_types_are_preserved_and_shared_memory_is_written_in_full(tmp_path: Path) -> None:
    table = torch.randn(4, 6).bfloat16()
    held = {"a": table, "tied": table, "row": table[1], "turned": table.T, "ids": torch.arange(3), "flag": table > 0}
    torch.save(held, tmp_path / "pytorch_model.bin")
    found = load_file(convert(tmp_path) / "model.safetensors")
    assert all(torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in held.items())
    for content in ([torch.ones(2)], {"a": {"b": torch.ones(2)}}, {"epoch": 3}, {}):
        torch.save(content, tmp_path / "pytorch_model.bin")
        with pytest.raises(HubError, match="holds no plain table of tensors by their names"):
            convert(tmp_path, overwrite=True)
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(HubError, match="has no pytorch_model.bin to convert"):
        convert(tmp_path)


class Code(NamedTuple):
    """Runs a function when it is unpickled."""

    path: Path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.attack("models")
def test_code_in_a_pickle_is_not_run(tmp_path: Path) -> None:
    file, traces = tmp_path / "pytorch_model.bin", tmp_path / "owned"
    for content in ({"a": torch.ones(2), "b": Code(traces)}, Code(traces)):
        torch.save(content, file)
        with pytest.raises(HubError, match="holds more than tensors .*which could run program code: it is not opened"):
            convert(tmp_path)
    file.write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    with pytest.raises(HubError, match="holds more than tensors|cut short or damaged"):
        convert(tmp_path)
    assert not traces.exists()
    assert {each.name for each in tmp_path.iterdir()} == {"pytorch_model.bin"}
