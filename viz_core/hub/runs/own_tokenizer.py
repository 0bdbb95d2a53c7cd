"""Tokenizers that a folder does not describe: a regular expression, a function, or token ids as they are."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from viz_core.hub.store import HubError
from viz_core.hub.store.files import LocalModel, read_json
from viz_core.runtime.limited_process import LimitError, Limits, run_limited
from viz_core.runtime.tokenizer_trial import try_pattern

Tokenize: TypeAlias = Callable[[str], Sequence[str] | Sequence[int]]
"""A function from a text to its tokens or their ids."""

_BERT = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
_LIMITS = Limits(cpu_seconds=3, memory=2**31)


class OwnTokenizer:
    """What `TextInput` needs of a tokenizer, made of a pattern or a function and the vocabulary of a folder.

    Names are looked up in vocab.txt (a name a line) or vocab.json. Those not in it become the unknown token; without
    one they are refused. The beginning and the end of a text get the folder's cls_token and sep_token, those of BERT
    unless special_tokens_map.json or tokenizer_config.json name others, where the vocabulary has them. Ids are taken as
    they are: nothing is added to them.

    Args:
        tokenize: a function, a pattern whose matches are the tokens, or None for texts that are ids, like "2 17 5".
    """

    scheme = "bare"  # of `viz_core.hub.runs.token_text`: a token is what its name says, and a word
    added_tokens_decoder: dict[int, Any] = {}  # noqa: RUF012
    model_max_length = None

    def __init__(self, place: LocalModel, tokenize: "Tokenize | re.Pattern[str] | None", num_embeddings: int) -> None:
        self._place, self._names = place.name, _read_vocabulary(place)
        self._numbers = {name: number for number, name in self._names.items()}
        self._size = max(self._names, default=num_embeddings - 1) + 1
        special = _BERT | _special_tokens(place)
        self._special = {role: self._numbers[name] for role, name in special.items() if name in self._numbers}
        self._joiner = "" if isinstance(tokenize, re.Pattern) else " "
        if isinstance(tokenize, re.Pattern):
            _check_pattern(tokenize)
            self.algorithm, self._tokenize = "pattern", _matches_of(tokenize)
        elif tokenize is None:
            self.algorithm, self._tokenize = "token ids", self._read_ids
        else:
            self.algorithm, self._tokenize = "function", tokenize

    def __len__(self) -> int:
        return self._size

    def __call__(self, *texts: str, text_target: str | None = None, **_: Any) -> dict[str, list[int]]:
        """The ids of one text."""
        if len(texts) > 1:
            raise HubError("The tokenizer of {name} takes one text, not a pair.", name=self._place)
        tokens = self._tokenize(texts[0] if text_target is None else text_target)
        if isinstance(tokens, str | Mapping):
            raise ValueError(f"tokenizer: expected a function to a list of tokens or ids, got {type(tokens).__name__}")
        numbers = [operator.index(token) for token in tokens if not isinstance(token, str)]
        ids = [self._number(token) for token in tokens if isinstance(token, str)]
        if numbers and ids:
            raise ValueError("tokenizer: expected a function to tokens or to ids, got both")
        if numbers or not ids:
            return {"input_ids": numbers}
        cls, sep = ([self._special[role]] if role in self._special else [] for role in ("cls", "sep"))
        return {"input_ids": [*([] if ids[:1] == cls else cls), *ids, *([] if ids[-1:] == sep else sep)]}

    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str]:
        """Names of tokens; "#7" for one that the folder does not name."""
        return [self._names.get(number, f"#{number}") for number in ids]

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The tokens joined, by spaces unless a pattern found them."""
        special = self.all_special_ids if skip_special_tokens else set()
        return self._joiner.join(self.convert_ids_to_tokens([number for number in ids if number not in special]))

    @property
    def all_special_ids(self) -> set[int]:
        """Ids that are not part of a text."""
        return set(self._special.values())

    def __getattr__(self, name: str) -> int | None:
        """Ids by role, such as `unk_token_id`; None where the folder has no such token."""
        if name.startswith("_") or not name.endswith("_token_id"):
            raise AttributeError(name)
        return self._special.get(name.removesuffix("_token_id"))

    def _number(self, name: str) -> int:
        number = self._numbers.get(name, self._special.get("unk"))
        if number is None:
            raise HubError("The vocabulary of {name} lacks {token}.", name=self._place, token=repr(name))
        return number

    def _read_ids(self, text: str) -> list[int]:
        parts = re.split(r"[\s,]+", text.strip())
        if not all(part.isascii() and part.isdecimal() for part in parts):
            raise HubError(
                "{name} lacks its tokenizer. Type token ids, like 2 17 5, or load it with a tokenizer of your own.",
                name=self._place,
            )
        return [int(part) for part in parts]


def _matches_of(pattern: re.Pattern[str]) -> Tokenize:
    """All matches in a text, in which nothing but white space may be left over."""

    def tokenize(text: str) -> list[str]:
        left = pattern.sub("", text).strip()
        if left:
            raise HubError("The pattern matches no token at “{text}”.", text=left[:20])
        return [match.group() for match in pattern.finditer(text) if match.group()]

    return tokenize


def _check_pattern(pattern: re.Pattern[str]) -> None:
    """Try a pattern on long texts in a process of its own: Python's matcher cannot be interrupted."""
    try:
        run_limited(try_pattern, pattern.pattern.encode(), [int(pattern.flags)], _LIMITS)
    except LimitError:
        raise HubError("The pattern takes too long on some texts, so it is not used.") from None


def _read_vocabulary(place: LocalModel) -> dict[int, str]:
    """The names of tokens by their ids, {} where the folder has none."""
    path = place.path / "vocab.txt"
    if path.is_file():
        return {i: name.rstrip("\r") for i, name in enumerate(path.read_text("utf-8").removesuffix("\n").split("\n"))}
    path = place.path / "vocab.json"
    found = read_json(path, place.name) if path.is_file() else {}
    return {int(number): str(name) for name, number in found.items()}


def _special_tokens(place: LocalModel) -> dict[str, str]:
    """Special tokens by role, such as "cls", as the folder names them."""
    named: dict[str, str] = {}
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        path: Path = place.path / file
        for role, value in (read_json(path, place.name) if path.is_file() else {}).items():
            content = value.get("content") if isinstance(value, dict) else value
            if role.endswith("_token") and isinstance(content, str):
                named[role.removesuffix("_token")] = content
    return named
