"""Download a model of the Hub, pinned to one commit; offline, find it in the cache."""

import errno
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from viz_core.hub.store import HubError
from viz_core.hub.store.files import LocalModel, check_config, check_weight_names, read_json

_SWITCHED_OFF = "Downloads are switched off here, and {name} is not in this machine's cache. Choose a model that is."
_AWAY = "The Hub cannot be reached now, and {name} is not in this machine's cache. Choose a model that is."
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_ABANDONED = 120  # seconds after which nothing more comes into a file
Progress = Callable[[int, int], None]
"""Called with the bytes that have come and the bytes there are, from several threads."""

WANTED = re.compile(
    r"(config|generation_config|tokenizer\w*|special_tokens_map|added_tokens|(video_)?preprocessor_config|processor_config"
    r"|vocab|model\.safetensors\.index)\.json|model(-\d+-of-\d+)?\.safetensors|vocab\.txt|merges\.txt"
    r"|[\w.-]+\.(model|spm)|README\.md"
)
"""Files of a model, its tokenizer and its card; never code, pickles or other libraries' weights."""


def fetch(
    name: str,
    revision: str | None = None,
    *,
    check_size: Callable[[int], None] = lambda _: None,
    progress: Progress | None = None,
    offline: bool = False,
    token: str | bool | None = None,
) -> LocalModel:
    """A model of the Hub, downloaded where the cache lacks a file of it; arguments are those of `load_hub`.

    Args:
        check_size: gets the bytes of the weights before anything large is downloaded; may raise HubError.
    """
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub import errors as hub_errors
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # of whichever client it uses

    if offline or constants.HF_HUB_OFFLINE:
        return _from_cache(name, revision, _SWITCHED_OFF)
    try:
        info = HfApi(token=token).model_info(name, revision=revision, files_metadata=True, timeout=10)
        files = {file.rfilename: file.size or 0 for file in info.siblings or []}
        check_weight_names(list(files), name)
        wanted = [file for file in files if WANTED.fullmatch(file)]
        # By the branch's name, so that the cache can find it again without a network.
        options: dict[str, Any] = {"revision": revision or constants.DEFAULT_REVISION, "token": token}
        if "config.json" in wanted:  # a few hundred bytes tell whether the rest is worth the wait
            silent = _reporter(lambda *_: None, 0)
            small = snapshot_download(name, allow_patterns="config.json", tqdm_class=silent, **options)
            check_config(read_json(Path(small) / "config.json", name), name)
        check_size(sum(size for file, size in files.items() if file in wanted and file.endswith(".safetensors")))
        _remove_abandoned(name)
        bar = _reporter(progress or (lambda *_: None), sum(files[file] for file in wanted))
        return _snapshot(name, snapshot_download(name, allow_patterns=wanted, tqdm_class=bar, **options))
    except hub_errors.GatedRepoError:
        raise HubError(
            "{name} asks its readers to accept terms first, so it cannot be loaded here.", name=name
        ) from None
    except hub_errors.RevisionNotFoundError:
        raise HubError(
            "{name} has no revision {revision!r}. Leave it empty for the newest.", name=name, revision=revision
        ) from None
    except (hub_errors.RepositoryNotFoundError, hub_errors.HFValidationError):
        raise HubError(
            "There is no model {name} on the Hub, or it is private. Is it spelled as on its page?", name=name
        ) from None
    except (OSError, HTTPError, hub_errors.EntryNotFoundError) as error:  # no network, or a Hub that is ill
        if getattr(error, "errno", None) in _NO_SPACE:
            raise HubError("The disk of this machine is full, so {name} cannot be downloaded.", name=name) from None
        return _from_cache(name, revision, _AWAY)


def _from_cache(name: str, revision: str | None, why: str) -> LocalModel:
    from huggingface_hub import snapshot_download

    try:
        path = snapshot_download(name, revision=revision, local_files_only=True, allow_patterns="*.json")
    except (OSError, ValueError):
        raise HubError(why, name=f"{name}@{revision}" if revision else name) from None
    return _snapshot(name, path)


def _remove_abandoned(name: str) -> None:
    """Delete parts of files that an ended process has left: each try writes new ones, so the disk would fill."""
    from huggingface_hub import constants

    for part in Path(constants.HF_HUB_CACHE, f"models--{name.replace('/', '--')}", "blobs").glob("*.incomplete"):
        with suppress(OSError):  # another process has deleted it
            if time.time() - part.stat().st_mtime > _ABANDONED:
                part.unlink()


def _snapshot(name: str, path: str) -> LocalModel:
    """The model in a folder of the cache, which is named by the commit."""
    return LocalModel(name, "cache", Path(path), Path(path).name)


def _reporter(progress: Progress, total: int) -> type:
    """A progress bar that draws nothing and tells `progress` the bytes written so far."""
    from tqdm.auto import tqdm

    class Reporter(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._counts_bytes = "Reconstruct" in str(kwargs.get("desc"))
            kwargs.pop("name", None)
            super().__init__(*args, **{**kwargs, "disable": True})
            self._come = 0

        def update(self, n: float | None = 1) -> None:
            if self._counts_bytes:
                self._come += int(n or 0)
                progress(min(self._come, total), total)

    return Reporter
