"""Tokenizers, image processors and options for videos of a model's folder."""

import re
from typing import Any

from viz_core.hub.runs.text import TextInput
from viz_core.hub.runs.tokenizer_patterns import costly, panics_in_words
from viz_core.hub.store.errors import HubError
from viz_core.hub.store.files import read_json
from viz_core.hub.store.local_models import LocalModel
from viz_core.runtime.limited_process import LimitError, Limits, run_limited
from viz_core.runtime.tokenizer_trial import try_tokenizer

SAFE = {"local_files_only": True, "trust_remote_code": False}
"""Options with which transformers reads a folder: no network, no code of the repository."""

_VOCABULARY = re.compile(r"(tokenizer|vocab|tekken)\.json|vocab\.txt|[\w.-]+\.(model|spm)")


def load_tokenizer(place: LocalModel, network: Any) -> tuple[Any, TextInput]:
    """A tokenizer as transformers has it, and as texts go through it into `network`, the part of a model that reads."""
    from transformers import AutoTokenizer

    if not any(_VOCABULARY.fullmatch(file.name) for file in place.path.iterdir()):
        raise HubError("{name} lacks its tokenizer.", name=place.name)  # transformers would make up an empty one
    too_long = HubError(
        "The tokenizer of {name} has a pattern that takes too long on some texts, so it is not used.", name=place.name
    )
    file = place.path / "tokenizer.json"
    if file.is_file() and not _ends(file.read_bytes()):
        raise too_long
    with panics_in_words(too_long):
        tokenizer = AutoTokenizer.from_pretrained(place.path, **SAFE)
    if costly(tokenizer):
        raise too_long
    return tokenizer, TextInput(tokenizer, network.get_input_embeddings().num_embeddings)


def _ends(content: bytes) -> bool:
    """Whether a tokenizer.json can be tried within limits; one that is broken is for its reader to refuse."""
    limits = Limits(cpu_seconds=1 + len(content) // 2**20, memory=2**31)  # loading takes longer the larger it is
    try:
        return not run_limited(try_tokenizer, content, limits=limits)
    except LimitError as error:
        return error.status == 1  # an exception, not a signal


def load_image_processor(place: LocalModel) -> Any:
    """A model's image processor, working with Pillow."""
    from transformers import AutoImageProcessor

    return AutoImageProcessor.from_pretrained(place.path, backend="pil", **SAFE)


def load_video_options(place: LocalModel) -> dict[str, Any]:
    """What a model's folder says of videos; {} where nothing but what it says of pictures."""
    for file, key in (("video_preprocessor_config.json", None), ("processor_config.json", "video_processor")):
        path = place.path / file
        content = read_json(path, place.name) if path.is_file() else {}
        if found := content if key is None else content.get(key):
            return dict(found)
    return {}
