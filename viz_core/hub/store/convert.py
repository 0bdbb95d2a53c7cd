"""Weights from a pickle (pytorch_model.bin) as safetensors, without running any code of the file."""

import json
import pickle
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from viz_core.hub.store import HubError
from viz_core.hub.store.download import WANTED
from viz_core.hub.store.files import PICKLE, PICKLE_INDEX, SAFETENSORS, SAFETENSORS_INDEX, read_shards

_LICENCE = re.compile(r"(LICEN[CS]E|NOTICE)(\.\w+)?")


def convert(
    folder: Path,
    out: Path | None = None,
    *,
    overwrite: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Write the weights of a folder as safetensors and return the folder that `load_hub` then opens.

    Each pytorch_model*.bin is read by `torch.load(weights_only=True)`, which makes tensors and plain values only, and
    written with the same names, numbers and types. Tensors that share memory are each written in full, because a
    safetensors file shares none. Config, tokenizer, card and licence are copied. HubError if there is no such weight, a
    file holds more than tensors or is damaged, a file to write exists, or the disk is full; the message is for a
    person.

    Args:
        folder: with pytorch_model.bin, or with its parts and pytorch_model.bin.index.json.
        out: where to write; beside the .bin unless given. It is made if it is missing.
        overwrite: replace files that are there.
        progress: gets the file that is converted, its number from 1, and how many there are.
    """
    folder = folder.expanduser().resolve()
    target, name = (out or folder).expanduser().resolve(), folder.name
    shards = pickled_weights(folder)
    if not shards:
        raise HubError("{name} has no {file} to convert.", name=name, file=PICKLE)
    names = [SAFETENSORS] if len(shards) == 1 else [_part(i, len(shards)) for i in range(1, len(shards) + 1)]
    copied = [] if target == folder else [file for file in sorted(folder.iterdir()) if _is_copied(file)]
    written = [*names, *([SAFETENSORS_INDEX] if len(shards) > 1 else []), *(file.name for file in copied)]
    present = [SAFETENSORS, SAFETENSORS_INDEX, *written]
    there = [] if overwrite else [each for each in present if (target / each).exists()]
    if there:
        raise HubError(
            "{file} is in {folder} already: nothing was written. Choose another folder, or --overwrite.",
            file=there[0],
            folder=target.name,
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
        places: dict[str, str] = {}
        size = 0
        for number, (shard, safe) in enumerate(zip(shards, names, strict=True), start=1):
            if progress is not None:
                progress(shard.name, number, len(shards))
            tensors = _read_tensors(shard, name)
            _replace(target / safe, lambda path, held=tensors: save_file(held, path, metadata={"format": "pt"}))
            (target / safe).chmod(shard.stat().st_mode & 0o777)  # save_file keeps others from reading it
            places |= dict.fromkeys(tensors, safe)
            size += sum(tensor.nbytes for tensor in tensors.values())
        if len(shards) > 1:
            index = json.dumps({"metadata": {"total_size": size}, "weight_map": places}, indent=1)
            _replace(target / SAFETENSORS_INDEX, lambda path: path.write_text(index, "utf-8"))
        for stale in {SAFETENSORS, SAFETENSORS_INDEX} - set(written):  # which a loader would prefer, or read beside
            (target / stale).unlink(missing_ok=True)
        for file in copied:
            shutil.copyfile(file, target / file.name)
    except (OSError, SafetensorError) as error:  # a full disk, a folder that may not be written, a type it lacks
        detail = getattr(error, "strerror", None) or str(error)
        raise HubError("The safetensors of {name} cannot be written: {detail}", name=name, detail=detail) from None
    return target


def pickled_weights(folder: Path) -> tuple[Path, ...]:
    """The files pytorch_model*.bin of a folder that hold its weights; () where there are none."""
    if (folder / PICKLE).is_file():
        return (folder / PICKLE,)
    return read_shards(folder, PICKLE_INDEX, folder.name) if (folder / PICKLE_INDEX).is_file() else ()


def _part(number: int, count: int) -> str:
    return f"model-{number:05d}-of-{count:05d}.safetensors"


def _is_copied(file: Path) -> bool:
    wanted = WANTED.fullmatch(file.name) or _LICENCE.fullmatch(file.name)
    return wanted is not None and file.is_file() and ".safetensors" not in file.name


def _read_tensors(file: Path, name: str) -> dict[str, Tensor]:
    """The tensors of a pickle, each in memory of its own."""
    try:
        content: Any = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.search(r"GLOBAL (\S+)", str(error))
        detail = found[1] if found else "no plain pickle of tensors"
        raise HubError(
            "{file} of {name} holds more than tensors ({detail}), which could run program code: it is not opened.",
            file=file.name,
            name=name,
            detail=detail,
        ) from None
    except Exception:  # whatever a file that is cut short or no pickle leads to
        raise HubError(
            "The weights of {name} ({file}) cannot be read: the file is cut short or damaged.",
            name=name,
            file=file.name,
        ) from None
    wrong = [key for key, value in content.items() if not isinstance(value, Tensor)] if _is_dict(content) else [""]
    if wrong or not content:
        raise HubError(
            "{file} of {name} holds no plain table of tensors by their names ({detail}).",
            file=file.name,
            name=name,
            detail=str(wrong[0]) or type(content).__name__ if wrong else "{}",
        )
    return _apart(content)


def _is_dict(content: Any) -> bool:
    return isinstance(content, dict) and all(isinstance(key, str) for key in content)


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, without memory that two of them share or that one leaves unused."""
    uses = Counter(tensor.untyped_storage().data_ptr() for tensor in tensors.values())

    def is_alone(tensor: Tensor) -> bool:
        storage = tensor.untyped_storage()
        return uses[storage.data_ptr()] == 1 and storage.nbytes() == tensor.nbytes and tensor.is_contiguous()

    return {
        name: tensor if is_alone(tensor) else tensor.clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under another name and give it its own once it is whole."""
    unfinished = path.with_name(f"{path.name}.part")
    try:
        write(unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
