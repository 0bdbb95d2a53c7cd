"""A page's state as a file, for texts that are too long for a URL. A file is untrusted input.

JSON: {"attention-atlas": 1, "chapter": NAME, "address": {PARAMETER: [VALUE, ...]}, "texts": {CONTROL: TEXT}}.
The address is treated like any link: each control checks its own value. Texts are set in text controls only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

VERSION = 1
MAX_BYTES = 500_000  # a browser sends its texts with every change, and a public server bounds messages
MAX_IN_URL = 4000  # characters; servers refuse URLs of a few times this length
_MAX_NAMES = 100
_NAME = re.compile(r"[a-z]+(-[a-z0-9]+)*")
_VIEW_PARAMETERS = frozenset({"head", "pin", "look"})


class PageFileError(ValueError):
    """An invalid page file; `reason` is the name of the message, `values` are the names in it."""

    def __init__(self, reason: str, **values: str) -> None:
        super().__init__(f"page file: {reason} {values}")
        self.reason, self.values = reason, values


@dataclass(frozen=True)
class PageFile:
    """The state of a page.

    Attributes:
        chapter: its name.
        address: the values of each query parameter.
        texts: those too long for a URL, by the key of their control.
    """

    chapter: str
    address: Mapping[str, list[str]]
    texts: Mapping[str, str]


def read_page_file(content: bytes, chapter: str, prefix: str, controls: Set[str]) -> PageFile:
    """Read an uploaded page file.

    Args:
        content: of the file.
        chapter: the one that is open.
        prefix: of its query parameters.
        controls: keys of its controls.

    Raises:
        PageFileError: if the file is too large, no page file, of another chapter, or names unknown parameters.
    """
    if len(content) > MAX_BYTES:
        raise PageFileError("large", most=f"{MAX_BYTES // 1000}")
    try:
        page = json.loads(content.decode())
        json.dumps(page, ensure_ascii=False).encode()  # refuses lone surrogates
    except (ValueError, RecursionError):
        raise PageFileError("none") from None
    if not isinstance(page, dict) or set(page) != {"attention-atlas", "chapter", "address", "texts"}:
        raise PageFileError("none")
    name, address, texts = page["chapter"], page["address"], page["texts"]
    if page["attention-atlas"] != VERSION or not _is_name(name) or not _is_address(address) or not _is_texts(texts):
        raise PageFileError("none")
    if name != chapter:
        raise PageFileError("elsewhere", chapter=name)
    unknown = [each for each in address if each not in _VIEW_PARAMETERS and not each.startswith(f"{prefix}-")]
    unknown += [each for each in texts if each not in controls]
    if unknown:
        raise PageFileError("strange", name=unknown[0])
    return PageFile(name, address, texts)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 40 and _NAME.fullmatch(value) is not None


def _is_address(value: Any) -> bool:
    """Whether these are query parameters with their values, together no longer than a link may be."""
    return (
        isinstance(value, dict)
        and len(value) <= _MAX_NAMES
        and all(map(_is_name, value))
        and all(isinstance(texts, list) and texts for texts in value.values())
        and all(isinstance(text, str) for texts in value.values() for text in texts)
        and sum(len(text) + 1 for texts in value.values() for text in texts) <= 2 * MAX_IN_URL
    )


def _is_texts(value: Any) -> bool:
    """Whether these are texts by control, each too long for a URL."""
    return isinstance(value, dict) and all(
        _is_name(name) and isinstance(text, str) and len(text) > MAX_IN_URL for name, text in value.items()
    )
