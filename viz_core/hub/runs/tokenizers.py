"""Texts as input: tokenizers that are safe to load, encoding under a lock, decoding.

A tokenizer is tried before it is used: backtracking over its pattern (a+)+ doubles with every letter, over a*a* it
grows with the square of the text (Davis and others 2018, "The impact of regular expression denial of service"). The
library that matches patterns lets no other thread run meanwhile and cannot be interrupted, so the trial runs in a
process of its own, whose processor time and memory are bounded.
"""

import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from viz_core.hub.runs.own_tokenizer import OwnTokenizer
from viz_core.hub.runs.token_text import Reader, Token
from viz_core.hub.store import HubError
from viz_core.hub.store.files import SAFE, LocalModel
from viz_core.hub.transformers_internals import vocabulary_size
from viz_core.runtime.limited_process import LimitError, Limits, run_limited
from viz_core.runtime.tokenizer_trial import try_tokenizer


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
