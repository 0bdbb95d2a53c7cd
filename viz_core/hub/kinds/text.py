"""What kinds that read or write texts have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from viz_core.hub.kinds.base import ModelKind
from viz_core.hub.runs.token_text import Token
from viz_core.hub.runs.tokenizers import TextInput, load_tokenizer
from viz_core.hub.store.files import LocalModel


@dataclass(frozen=True, eq=False)
class TextKind(ModelKind):
    """A model with a tokenizer."""

    tokenizer: TextInput

    @classmethod
    def load_inputs(cls, place: LocalModel, model: Any) -> dict[str, Any]:
        return {"tokenizer": load_tokenizer(place, model)[1]}

    def card_fields(self) -> dict[str, Any]:
        size = self.tokenizer.vocabulary_size
        return super().card_fields() | {"tokenizer": self.tokenizer.name, "vocabulary_size": size}

    def read(self, ids: Sequence[int]) -> tuple[Token, ...]:
        return self.tokenizer.read(ids)

    def room(self, stack: str) -> int | None:
        """The most tokens a stack takes: rows of its tables of positions, else the length it was trained for."""
        tables = [len(p.values) for p in self.positions if p.scheme in ("learned", "sinusoidal") and p.stack == stack]
        if tables:
            return min(tables)
        config = self.model.config.get_text_config(decoder=True)
        trained = getattr(config, "max_position_embeddings", None)
        return int(trained) if trained else self.tokenizer.max_tokens

    def decoder_room(self, most: int | None) -> int | None:
        """The most tokens of the decoder where a host allows `most`; None for any number."""
        return min((limit for limit in (self.room("decoder"), most) if limit is not None), default=None)

    def encode(
        self, text: str, pair: str | None = None, *, most: int | None = None, target: bool = False
    ) -> dict[str, Int[Tensor, "1 tokens"]]:
        """A text, a pair, or a decoder's target as ids on the model's device; refused where it has too many tokens."""
        inputs = self.tokenizer.encode(text, pair, target=target)
        stack = "decoder" if target else self.stack or "encoder"
        self.check_length(inputs["input_ids"].shape[1], self.room(stack), most)
        return {name: ids.to(self.device) for name, ids in inputs.items()}

    def encode_prompt(self, text: str, most: int | None) -> dict[str, Tensor]:
        """A text as ids with a mask that hides none of them."""
        ids = self.encode(text, most=most)["input_ids"]
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def ends(self) -> tuple[int, ...]:
        """The tokens with which the model ends what it writes."""
        ends = self.model.generation_config.eos_token_id
        return tuple(ends) if isinstance(ends, list) else () if ends is None else (ends,)


def ids_of(inputs: dict[str, Tensor]) -> list[int]:
    """The token ids of an encoded text."""
    return [int(i) for i in inputs["input_ids"][0]]
