"""Load a model by its name or from a folder."""

import contextlib
import copy
import os
import re
import threading
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from viz_core.hub.attention import register
from viz_core.hub.custom_attention import own_sites
from viz_core.hub.instrument import watch_layers
from viz_core.hub.kinds import recognise
from viz_core.hub.model import HubModel, describe
from viz_core.hub.runs.positions import find_positions
from viz_core.hub.shipped import load_shipped, shipped_names
from viz_core.hub.store import HubError, check_budget, check_name, check_revision, estimate_bytes, precision
from viz_core.hub.store.download import Progress, fetch
from viz_core.hub.store.files import SAFE, LocalModel, ModelFiles, folder_model, local_models, read_folder
from viz_core.hub.transformers_internals import warn_of_missing
from viz_core.runtime.device import best_device, find_device
from viz_core.runtime.packages import require
from viz_core.trace import find_sites
from viz_core.trace.passes import every_site
from viz_core.trace.sites import is_linear_attention

# transformers builds models under patches that hold for all threads.
_building = threading.Lock()
_importing = threading.Lock()


def load_hub(
    name_or_path: str | Path,
    revision: str | None = None,
    device: torch.device | str | None = None,
    *,
    folders: Iterable[Path] = (),
    memory_budget: int | None = None,
    offline: bool = False,
    token: str | bool | None = None,
    progress: Progress | None = None,
    tokenizer: Any = None,
) -> HubModel:
    """Load a model from the Hub, an installed package or a folder, in evaluation mode.

    Only safetensors are read and no code of the repository is run. float32 on a CPU, bfloat16 on a GPU that has it.

    Args:
        name_or_path: a name is looked up among the models that ship, installed packages, in `folders`, and on the
            Hub. A folder is given as a Path: no string, wherever it came from, ever leads to a place on the disk.
        revision: branch, tag or commit on the Hub; the newest unless given. The card tells the commit.
        device: the best there is unless given.
        folders: whose models may be named; each a model, or a folder of models.
        memory_budget: bytes a model may need; four fifths of the device's free memory unless given.
        offline: use only what is on this machine.
        token: for private models; False: never the one stored on this machine.
        progress: gets the bytes that have come and those there are, while a model is downloaded.
        tokenizer: in place of the model's own: a tokenizer of transformers; or a function from a text to its tokens or
            their ids, or a compiled regular expression whose matches are the tokens (`OwnTokenizer`). A folder without
            a tokenizer is loaded too: its texts are token ids, or `run(token_ids=...)`.

    Raises:
        HubError: if there is no such model, it cannot be had or cannot be run here; the message is for a person.
        ValueError: if the device is not on this machine, that is neither a name nor a Path, or no such tokenizer.
        ImportError: if the extra "hub" is not installed, and the model is none that does without.
    """
    where = best_device() if device is None else find_device(str(device))
    if isinstance(name_or_path, Path):
        name_or_path = Path(os.path.abspath(name_or_path.expanduser()))  # "." and ".." have no name of their own
    elif not isinstance(name_or_path, str):
        raise ValueError(f"name_or_path: expected a name or a Path, got {type(name_or_path).__name__}")
    name = name_or_path.name if isinstance(name_or_path, Path) else check_name(name_or_path)
    if tokenizer is not None and not (callable(tokenizer) or isinstance(tokenizer, re.Pattern)):
        raise ValueError(f"tokenizer: expected a function or a compiled pattern, got {type(tokenizer).__name__}")
    if isinstance(name_or_path, str) and name in shipped_names():
        if tokenizer is not None:
            raise HubError("{name} takes no tokenizer but its own.", name=name)
        return load_shipped(name, where)
    import_transformers()
    dtype = precision(where)

    def check_size(nbytes: int) -> None:  # of weights not yet here: at most four bytes a parameter
        check_budget(name, estimate_bytes(nbytes // 4, dtype), memory_budget, where)

    revision = check_revision(revision)
    if isinstance(name_or_path, Path):
        place = folder_model(name_or_path)
    elif local := next((m for m in local_models(folders) if m.name == name and m.source != "cache"), None):
        if revision not in (None, local.revision):
            raise HubError("{name} is here in one version only: {revision}", name=name, revision=local.revision or "-")
        place = local
    else:
        place = fetch(name, revision, check_size=check_size, progress=progress, offline=offline, token=token)
    place = replace(place, tokenizer=tokenizer)
    files = read_folder(place.path, name)
    check_budget(name, estimate_bytes(files.num_parameters, dtype), memory_budget, where)
    with _building, _in_words(place):
        return _build(place, files, where, dtype, memory_budget)


def import_transformers() -> None:
    """Import transformers with what a first load needs of it; the first call takes seconds.

    The package replaces its own module while it is imported: another thread would get an empty one, hence the lock.
    ImportError if it is not installed, or another version than we know.
    """
    require("hub", "transformers", "huggingface-hub", "python-frontmatter")
    with _importing:
        import transformers

        _ = (transformers.PreTrainedModel, transformers.AutoTokenizer)  # each name imports what it stands for
        warn_of_missing()


def _build(
    place: LocalModel, files: ModelFiles, device: torch.device, dtype: torch.dtype, memory_budget: int | None
) -> HubModel:
    from transformers import AutoConfig
    from transformers.utils.logging import disable_progress_bar

    register()
    disable_progress_bar()
    config = AutoConfig.from_pretrained(place.path, **SAFE)
    kind, auto_class, head = recognise(config, place.name)
    if place.tokenizer is not None and not kind.takes_token_ids:
        raise HubError("{name} takes no tokenizer but its own.", name=place.name)
    with torch.device("meta"):  # the model's shape without its weights: has it attention, and does that pass our door?
        shape = auto_class.from_config(copy.deepcopy(config), trust_remote_code=False)
    numbers = sum(tensor.numel() for tensor in (*shape.parameters(), *shape.buffers()))
    check_budget(place.name, estimate_bytes(numbers, dtype), memory_budget, device)  # what the config says, too
    layers = find_sites(shape, kind.stack)
    if not layers:
        raise HubError(
            "{name} ({kind}) has no attention: there is nothing to look at here.",
            name=place.name,
            kind=config.model_type,
        )
    softmaxes = {layer: site for layer, site in layers.items() if not is_linear_attention(layer)}
    own_code = bool(softmaxes) and set(own_sites(softmaxes)) == set(softmaxes.values())
    model, report = auto_class.from_pretrained(
        place.path,
        config=config,
        dtype=dtype,
        use_safetensors=True,
        attn_implementation="eager" if own_code else None,
        output_loading_info=True,
        **SAFE,
    )
    # Poolers are not part of what is shown; with anything else missing, maps would be those of random numbers.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise HubError(
            "The weights of {name} lack {count} parts that the model needs ({part}, ...).",
            name=place.name,
            count=len(missing),
            part=missing[0],
        )
    unused = _unused(report["unexpected_keys"], model.base_model_prefix)
    if unused:
        warnings.warn(
            f"{place.name}: {type(model).__name__} has no place for the weights of {', '.join(unused)}, which are left "
            "out",
            stacklevel=4,
        )
    model = model.to(device).eval().requires_grad_(False)
    layers = find_sites(model, kind.stack, outside=True)
    watch_layers(model, layers)
    positions = find_positions(model, kind.stack, is_picture=kind.input_label == "pictures")
    with _in_words(place, kind.input_part):
        inputs = kind.load_inputs(place, model)
    engine = kind(place.name, head, model, device, positions, own_code, _serial(model), **inputs)
    sites = tuple(site for own in every_site(model, layers).values() for site in own)
    return HubModel(describe(place, files, engine, sites, unused), engine)


def _unused(keys: Iterable[str], prefix: str) -> tuple[str, ...]:
    """The parts of a model that weights without a place in it are of: their names, without what is never shown."""
    names = (key.removeprefix(f"{prefix}.").rpartition(".")[0] or key for key in keys)
    parts = dict.fromkeys(sorted(name for name in names if "pooler" not in name))
    return tuple(part for part in parts if part.rpartition(".")[0] not in parts)


def _serial(model: Any) -> contextlib.AbstractContextManager[Any]:
    """A lock for models whose module stores state of a call: rotary frequencies that change with the
    length of the input (dynamic), how far a picture shifts the positions after it (Qwen2-VL)."""
    rope = str(getattr(model.config.get_text_config(decoder=True), "rope_parameters", None) or "")
    keeps = "dynamic" in rope or "longrope" in rope or any(hasattr(part, "rope_deltas") for part in model.modules())
    return threading.Lock() if keeps else contextlib.nullcontext()


@contextlib.contextmanager
def _in_words(place: LocalModel, part: str = "") -> Iterator[None]:
    """Turn a library's exceptions about a folder, or one part of the model in it, into one sentence."""
    try:
        yield
    except HubError:
        raise
    except torch.OutOfMemoryError:
        raise HubError("The memory does not suffice for {name}. Choose a smaller model.", name=place.name) from None
    except Exception as error:  # whatever a config can bring about: wrong sizes, missing libraries, unknown options
        lines = str(error).replace(str(place.path), place.name).splitlines()  # without this machine's folders
        text = next((line.strip() for line in lines if line.strip()), type(error).__name__)
        values = {"name": place.name, "detail": text if len(text) <= 200 else f"{text[:200]}…"}
        if part:
            raise HubError("The {part} of {name} cannot be loaded: {detail}", part=part, **values) from None
        raise HubError("{name} cannot be loaded: {detail}", **values) from None
