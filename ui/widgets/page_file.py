"""A page's state as a file, for what no address can hold. Whoever opens one may have it from a stranger.

JSON: {"attention-atlas": 1, "chapter": NAME, "address": {PARAMETER: [VALUE, ...]}, "texts": {CONTROL: TEXT}}.
The address is worth what any link is worth: each control checks what it is asked for. Texts go to text controls alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

VERSION = 1
MOST_BYTES = 500_000  # a browser sends its texts with every move, and a host bounds what it sends
MOST_IN_ADDRESS = 4000  # characters; servers refuse addresses of a few times this length
_MOST_NAMES = 100
_NAME = re.compile(r"[a-z]+(-[a-z0-9]+)*")
_OF_VIEWS = frozenset({"head", "pin", "look"})


class PageFileError(ValueError):
    """A file that is not a page's; `reason` names the sentence that says so, `values` the plain names in it."""

    def __init__(self, reason: str, **values: str) -> None:
        super().__init__(f"page file: {reason} {values}")
        self.reason, self.values = reason, values


@dataclass(frozen=True)
class PageFile:
    """What an address says of a page, and what is too long for it.

    Attributes:
        chapter: its name.
        address: the values of each query parameter.
        texts: by the key of their control.
    """

    chapter: str
    address: Mapping[str, list[str]]
    texts: Mapping[str, str]


def read_page_file(content: bytes, chapter: str, prefix: str, controls: Set[str]) -> PageFile:
    """A file that this chapter can open.

    Args:
        content: what was uploaded.
        chapter: the one that is open.
        prefix: what its parameters begin with.
        controls: keys of its controls.

    Raises:
        PageFileError: if it is too large, is none, or is of another chapter; or names what the chapter does not have.
    """
    if len(content) > MOST_BYTES:
        raise PageFileError("large", most=f"{MOST_BYTES // 1000}")
    try:
        page = json.loads(content.decode())
        json.dumps(page, ensure_ascii=False).encode()  # half a character is no text
    except (ValueError, RecursionError):
        raise PageFileError("none") from None
    if not isinstance(page, dict) or set(page) != {"attention-atlas", "chapter", "address", "texts"}:
        raise PageFileError("none")
    of, address, texts = page["chapter"], page["address"], page["texts"]
    if page["attention-atlas"] != VERSION or not _is_name(of) or not _is_address(address) or not _is_texts(texts):
        raise PageFileError("none")
    if of != chapter:
        raise PageFileError("elsewhere", chapter=of)
    strange = [name for name in address if name not in _OF_VIEWS and not name.startswith(f"{prefix}-")]
    strange += [name for name in texts if name not in controls]
    if strange:
        raise PageFileError("strange", name=strange[0])
    return PageFile(of, address, texts)


def _is_name(given: Any) -> bool:
    return isinstance(given, str) and len(given) <= 40 and _NAME.fullmatch(given) is not None


def _is_address(given: Any) -> bool:
    """Names of parameters with their values, all together no longer than a link may be."""
    return (
        isinstance(given, dict)
        and len(given) <= _MOST_NAMES
        and all(map(_is_name, given))
        and all(isinstance(values, list) and values for values in given.values())
        and all(isinstance(value, str) for values in given.values() for value in values)
        and sum(len(value) + 1 for values in given.values() for value in values) <= 2 * MOST_IN_ADDRESS
    )


def _is_texts(given: Any) -> bool:
    """Only what an address cannot hold: what it can stands there."""
    return isinstance(given, dict) and all(
        _is_name(name) and isinstance(text, str) and len(text) > MOST_IN_ADDRESS for name, text in given.items()
    )
