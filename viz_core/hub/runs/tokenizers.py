"""Texts as input: tokenizers that are safe to load, encoding under a lock, decoding.

A tokenizer is tried before it is used: backtracking over its pattern (a+)+ doubles with every letter, over a*a* it
grows with the square of the text (Davis and others 2018, "The impact of regular expression denial of service"). The
library that matches patterns lets no other thread run meanwhile and cannot be interrupted, so the trial runs in a
process of its own, whose processor time and memory are bounded.
"""

import operator
import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import torch
from jaxtyping import Int
from torch import Tensor

from viz_core.hub.runs.token_text import Reader, Token
from viz_core.hub.store import HubError
from viz_core.hub.store.files import SAFE, LocalModel, read_json
from viz_core.hub.transformers_internals import vocabulary_size
from viz_core.runtime.limited_process import LimitError, Limits, run_limited
from viz_core.runtime.tokenizer_trial import try_pattern, try_tokenizer

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


@contextmanager
def panics_in_words(refusal: HubError) -> Iterator[None]:
    """Raise `error` where the library panics over a pattern, which is not an Exception."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # pyo3's; it cannot be imported
            raise
        raise refusal from None


_GIVES_UP = "The model's tokenizer gives up on this text: one of its patterns takes too long. Try another text."
_WHITESPACE = {"\n", "\t"}


def clean_text(text: str) -> str:
    """The text without control characters and halves of characters; line ends and tabs stay."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c for c in plain if c in _WHITESPACE or unicodedata.category(c) not in ("Cc", "Cs"))


class TextInput:
    """A tokenizer with a lock, since fast tokenizers are not thread-safe."""

    def __init__(self, tokenizer: Any, num_embeddings: int) -> None:
        self._tokenizer = tokenizer
        self._num_embeddings = num_embeddings
        self._lock = threading.Lock()
        self._reader = Reader(tokenizer)

    @property
    def name(self) -> str:
        """The tokenizer's algorithm, like "WordPiece" or "BPE", or what stands for it ("function")."""
        if isinstance(self._tokenizer, OwnTokenizer):
            return self._tokenizer.algorithm
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        return "SentencePiece" if backend is None else type(backend.model).__name__

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids."""
        return len(self._tokenizer)

    def num_unknown(self, ids: Sequence[int]) -> int:
        """Number of unknown tokens among these ids; 0 for a vocabulary without one."""
        unknown = self._tokenizer.unk_token_id
        others = {self._tokenizer.bos_token_id, self._tokenizer.eos_token_id, self._tokenizer.pad_token_id}
        return 0 if unknown is None or unknown in others else list(ids).count(unknown)

    @property
    def max_tokens(self) -> int | None:
        """What the tokenizer says the model takes; None where it says nothing."""
        limit = getattr(self._tokenizer, "model_max_length", None)
        return int(limit) if limit and limit < 10**6 else None

    def encode(
        self, text: str, pair: str | None = None, *, target: bool = False, add_special_tokens: bool = True
    ) -> dict[str, Int[Tensor, "1 tokens"]]:
        """Encode a text or a pair: input_ids, and token_type_ids where the tokenizer has them.

        Args:
            target: it is what an encoder-decoder is to write, not what it reads.
            add_special_tokens: the tokenizer puts some around it.
        """
        cleaned = [clean_text(t) for t in ([text] if pair is None else [text, pair])]
        if not all(t.strip() for t in cleaned):
            raise HubError(
                "There is nothing to read yet: type a text." if pair is None else "Type both texts of the pair."
            )
        with self._lock, panics_in_words(HubError(_GIVES_UP)):
            # Not padded and not truncated: callers check the length.
            options = {"verbose": False, "add_special_tokens": add_special_tokens}
            encoded = self._tokenizer(text_target=cleaned[0]) if target else self._tokenizer(*cleaned, **options)
        ids = list(encoded["input_ids"])
        if not ids:
            raise HubError("The model's tokenizer finds nothing to read in this text.")
        if max(ids) >= self._num_embeddings and len(self._tokenizer) > self._num_embeddings:
            raise HubError(
                "The tokenizer does not belong to the model: it knows {known:,} tokens, the model {expected:,}.",
                known=self.vocabulary_size,
                expected=self._num_embeddings,
            )
        self.check_ids(ids)
        wanted = ("input_ids", "token_type_ids")
        return {name: torch.tensor([list(encoded[name])]) for name in wanted if name in encoded}

    def check_ids(self, ids: Sequence[int]) -> None:
        """Refuse ids that the model has no embedding of, and none at all."""
        wrong = [number for number in ids if not 0 <= number < self._num_embeddings]
        if wrong or not len(ids):
            raise HubError(
                "Token ids are numbers from 0 to {most:,}; {found} is none.",
                most=self._num_embeddings - 1,
                found=wrong[0] if wrong else "()",
            )

    def pad(self, ids: Int[Tensor, "1 tokens"], length: int) -> Int[Tensor, "1 length"]:
        """Pad ids at the end, for models that were trained on texts of one length without a mask."""
        if self._tokenizer.pad_token_id is None:
            raise HubError("The model's tokenizer has no token to fill a text with, which this model needs.")
        return torch.nn.functional.pad(ids, (0, length - ids.shape[1]), value=int(self._tokenizer.pad_token_id))

    def read(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """Tokens as people read them."""
        with self._lock:
            return self._reader.read(ids)

    def decode(self, ids: Sequence[int]) -> str:
        """The text that these tokens are, without special ones; its line breaks stay, blanks around it go."""
        with self._lock:
            return str(self._tokenizer.decode(list(ids), skip_special_tokens=True)).strip(" ")


_VOCABULARY = re.compile(r"(tokenizer|vocab|tekken)\.json|vocab\.txt|[\w.-]+\.(model|spm)")


def load_tokenizer(place: LocalModel, network: Any, *, or_ids: bool = False) -> tuple[Any, TextInput]:
    """A tokenizer as transformers has it, and as texts go through it into `network`, the part of a model that reads.

    Args:
        or_ids: where there is none, texts are token ids.
    """
    from transformers import AutoTokenizer

    own, size = place.tokenizer, vocabulary_size(network)
    lacks = not any(_VOCABULARY.fullmatch(file.name) for file in place.path.iterdir())
    if own is not None or (lacks and or_ids):
        is_whole = hasattr(own, "convert_ids_to_tokens")  # of transformers
        tokenizer = own if is_whole else OwnTokenizer(place, own, size)
        return tokenizer, TextInput(tokenizer, size)
    if lacks:
        raise HubError("{name} lacks its tokenizer.", name=place.name)  # transformers would make up an empty one
    too_long = HubError(
        "The tokenizer of {name} has a pattern that takes too long on some texts, so it is not used.", name=place.name
    )
    file = place.path / "tokenizer.json"
    if file.is_file() and not _ends(file.read_bytes()):
        raise too_long
    with panics_in_words(too_long):
        tokenizer = AutoTokenizer.from_pretrained(place.path, **SAFE)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not file.is_file() and backend is not None and not _ends(backend.to_str().encode()):
        raise too_long  # a pattern from another file, such as tekken.json
    return tokenizer, TextInput(tokenizer, size)


def _ends(content: bytes) -> bool:
    """Whether a tokenizer.json can be tried within limits; one that is broken is for its reader to refuse."""
    limits = Limits(cpu_seconds=3 + len(content) // 2**20, memory=2**31)  # loading takes longer the larger it is
    try:
        return not run_limited(try_tokenizer, content, limits=limits)
    except LimitError as error:
        return error.status == 1  # an exception, not a signal
