"""Loading what ships: by name, checked to the last bit."""

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from tokenizers import Tokenizer

from viz_core.pretrained import CheckpointError, Translator, available, load

NAME = "tiny-en-fr"


@pytest.fixture
def folder(checkpoints: Path, tmp_path: Path) -> Path:
    """A copy of the model to break."""
    return Path(shutil.copytree(checkpoints, tmp_path / "checkpoints"))


def edit_config(folder: Path, **changes: Any) -> None:
    path = folder / NAME / "config.json"
    config = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}), encoding="utf-8")


def test_a_loaded_model_is_what_was_stored(translator: Translator, checkpoints: Path) -> None:
    stored = load_tensors((checkpoints / NAME / "model.safetensors").read_bytes())
    parameters = dict(translator.model.named_parameters())
    assert stored.keys() == parameters.keys()
    for name, parameter in parameters.items():
        assert stored[name].dtype == torch.float16
        assert parameter.dtype == torch.float32
        assert not parameter.requires_grad
        assert torch.equal(parameter, stored[name].float())
    model = translator.model
    assert model.decoder.dense.weight is model.decoder.embedding.weight is model.encoder.embedding.weight
    assert not any(module.training for module in model.modules())
    assert translator.device == torch.device("cpu")


@pytest.mark.attack("shipped files")
@pytest.mark.parametrize("name", ["", ".", "..", "nothing", "../checkpoints/tiny-en-fr", "tiny-en-fr/", "/etc", "a\0b"])
def test_only_names_of_models_that_ship(folder: Path, name: str) -> None:
    shutil.copy(folder / NAME / "config.json", folder / "config.json")
    shutil.copy(folder / NAME / "config.json", folder.parent / "config.json")
    with pytest.raises(CheckpointError, match="There is no model .*; those that ship: tiny-en-fr."):
        load(name, device="cpu", folder=folder)


FILES = ("model.safetensors", "config.json", "tokenizer.json", "card.md", "training.json")
DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut short": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "with a bit turned round": lambda path: path.write_bytes(
        bytes([path.read_bytes()[0] ^ 128]) + path.read_bytes()[1:]
    ),
    "swapped for another": lambda path: shutil.copy(path.with_name(FILES[FILES.index(path.name) - 1]), path),
    "read-only": lambda path: path.chmod(0o400),
    "missing": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.attack("shipped files")
@pytest.mark.parametrize(
    ("file", "damage"), [(file, damage) for i, file in enumerate(FILES) for damage in [*DAMAGE][:: 1 if i < 3 else 2]]
)
def test_each_file(file: str, damage: str, folder: Path, translator: Translator) -> None:
    """What a model needs is missed in a sentence; damage to what is told of it is named, or makes no difference."""
    whole = translator.translate("He is calm.").text
    DAMAGE[damage](folder / NAME / file)
    assert len(available(folder)) <= 1
    try:
        assert load(NAME, device="cpu", folder=folder).translate("He is calm.").text == whole
        got = "it works as before"
    except CheckpointError as error:
        got = str(error)
        assert file in got or "There is no model" in got  # a folder without a config is none
        assert len(got) < 300
    if damage == "read-only" or file in FILES[:3]:
        assert (got == "it works as before") == (damage == "read-only")


class Trap:
    """Unpickling this leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.attack("shipped files")
def test_a_pickle_is_refused_and_never_run(folder: Path) -> None:
    mark = folder / "executed"
    path = folder / NAME / "model.safetensors"
    edit_config(folder, sha256=None)
    for content in (pickle.dumps(Trap(mark)), pickle.dumps({"weight": 1}), b"", path.read_bytes()[:-1]):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="model.safetensors cannot be read, it may be cut short"):
            load(NAME, device="cpu", folder=folder)
    torch.save({"trap": Trap(mark)}, path)
    with pytest.raises(CheckpointError, match="model.safetensors cannot be read"):
        load(NAME, device="cpu", folder=folder)
    assert not mark.exists()


def reweighted(change: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    """Other weights under a digest that fits them: only their names and shapes can give them away."""

    def spoil(folder: Path) -> None:
        path = folder / NAME / "model.safetensors"
        tensors = load_tensors(path.read_bytes())
        change(tensors)
        content = save_tensors(tensors)
        path.write_bytes(content)
        edit_config(folder, sha256=hashlib.sha256(content).hexdigest())

    return spoil


def written(file: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / NAME / file).write_bytes(content)


def resized(**changes: Any) -> Callable[[Path], None]:
    """An architecture with other sizes."""

    def spoil(folder: Path) -> None:
        config = json.loads((folder / NAME / "config.json").read_text(encoding="utf-8"))["model"]
        edit_config(folder, model={key: value for key, value in {**config, **changes}.items() if value is not None})

    return spoil


def of_another_model(folder: Path) -> None:
    path = folder / NAME / "tokenizer.json"
    other = Tokenizer.from_file(str(path))
    other.add_tokens(["one more"])
    other.save(str(path))


def without_an_end(folder: Path) -> None:
    path = folder / NAME / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8").replace("<eos>", "<end>"), encoding="utf-8")


WEIGHT = "decoder.blks.block1.ffn.dense1.weight"
CONFIGS = (b"", b"[]", b'{"title": "no more"}', b"\xff\xfe\x00")
WRONG_SIZES: list[dict[str, Any]] = [{"num_heads": 5}, {"num_hiddens": "wide"}, {"num_blks": None}, {"colour": "teal"}]
SPOILED: list[tuple[Callable[[Path], object], str]] = [
    (
        reweighted(lambda tensors: tensors.update({WEIGHT: tensors[WEIGHT].T.contiguous()})),
        rf"{WEIGHT} has the wrong shape: expected \(48, 32\), got \(32, 48\)",
    ),
    (
        reweighted(lambda tensors: tensors.update({"decoder.dense.weight": tensors.pop("decoder.dense.bias")})),
        r"missing \['decoder.dense.bias'\], unknown \['decoder.dense.weight'\]",
    ),
    (written("model.safetensors", b""), r"its SHA-256 differs\): it may be cut short or altered. Fetch it again"),
    *((written("config.json", each), "config.json of model 'tiny-en-fr' cannot be read") for each in CONFIGS),
    *((resized(**each), "config.json does not describe this architecture") for each in WRONG_SIZES),
    (lambda folder: edit_config(folder, model=[]), "does not describe a known architecture, got None"),
    (written("tokenizer.json", b"{}"), "tokenizer.json cannot be read"),
    (of_another_model, r"tokenizer.json does not fit the model: expected \d+ tokens, got \d+"),
    (without_an_end, "tokenizer.json cannot be read: expected the tokenizer to have '<eos>'"),
]


@pytest.mark.attack("shipped files")
@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(("spoil", "message"), SPOILED)
def test_a_file_that_does_not_fit_says_so(folder: Path, spoil: Callable[[Path], object], message: str) -> None:
    spoil(folder)
    with pytest.raises(CheckpointError, match=message):
        load(NAME, device="cpu", folder=folder)
