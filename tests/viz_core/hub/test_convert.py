"""A pickle of weights becomes safetensors: every number, type and name, and no code of the file is run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from viz_core.hub import HubError, load_hub
from viz_core.hub.store.convert import convert

Tiny = Callable[[str], Path]


def pickled(path: Path) -> dict[str, Tensor]:
    """Write the weights of a folder as pytorch_model.bin alone, and return them."""
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
    reported = list[tuple[str, int, int]]()
    assert convert(path, progress=lambda *each: reported.append(each)) == path
    assert reported == [(f"pytorch_model-0000{i}-of-00002.bin", i, 2) for i in (1, 2)]
    assert load_hub(path, device="cpu").card.num_parameters == sum(tensor.numel() for tensor in tensors.values())
    (path / "pytorch_model-00002-of-00002.bin").unlink()
    with pytest.raises(HubError, match="lacks a part of its weights, pytorch_model-00002"):
        convert(path, overwrite=True)


def test_types_are_preserved_and_shared_memory_is_written_in_full(tmp_path: Path) -> None:
    table = torch.randn(4, 6).bfloat16()
    held = {"a": table, "tied": table, "row": table[1], "turned": table.T, "ids": torch.arange(3), "flag": table > 0}
    torch.save(held, tmp_path / "pytorch_model.bin")
    found = load_file(convert(tmp_path) / "model.safetensors")
    assert all(torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in held.items())


class Code:
    """Runs a function when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

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


@pytest.mark.parametrize("content", [[torch.ones(2)], {"a": {"b": torch.ones(2)}}, {"epoch": 3}, {}])
def test_what_is_no_table_of_tensors_is_refused(content: object, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "pytorch_model.bin")
    with pytest.raises(HubError, match="holds no plain table of tensors by their names"):
        convert(tmp_path)


def test_a_damaged_file_and_none_are_refused(copy: Tiny, tmp_path: Path) -> None:
    path = copy("bert")
    with pytest.raises(HubError, match=r"bert has no pytorch_model.bin to convert"):
        convert(path)
    pickled(path)
    file = path / "pytorch_model.bin"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(HubError, match="cut short or damaged"):
        convert(path)


def test_a_file_that_is_there_is_replaced_only_if_reported(copy: Tiny) -> None:
    path = copy("bert")
    tensors = load_file(path / "model.safetensors")
    torch.save({name: 2 * tensor for name, tensor in tensors.items()}, path / "pytorch_model.bin")
    with pytest.raises(HubError, match=r"model.safetensors is in bert already: nothing was written"):
        convert(path)
    name = next(iter(tensors))
    assert torch.equal(load_file(path / "model.safetensors")[name], tensors[name])
    convert(path, overwrite=True)
    assert torch.equal(load_file(path / "model.safetensors")[name], 2 * tensors[name])
