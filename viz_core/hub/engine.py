"""One loaded model with its tokenizer or image processor, and one recorded pass through it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from viz_core.hub.errors import HubError
from viz_core.hub.families import Family
from viz_core.hub.memory import human_bytes
from viz_core.hub.picture_prompt import PicturePrompt
from viz_core.hub.pictures import PictureInput
from viz_core.hub.positions import Positions, room_for_tokens
from viz_core.hub.sound_input import SoundInput
from viz_core.hub.text import TextInput
from viz_core.hub.vision_frames import PartialRecording
from viz_core.trace import Trace, no_recording, record, record_weights

_TEXT_FITS = "This text has {count:,} tokens; the model takes at most {most:,}. Shorten it."
_TEXT_ALLOWED = "This text has {count:,} tokens; at most {most:,} are allowed here. Shorten it."
_BOTH_FIT = (
    "The picture and the text together have {count:,} tokens; the model takes at most {most:,}. "
    "Shorten the text, or bring a smaller picture."
)
_BOTH_ALLOWED = (
    "The picture and the text together have {count:,} tokens; at most {most:,} are allowed here. "
    "Shorten the text, or bring a smaller picture."
)
_TOO_LITTLE_MEMORY = "The memory does not suffice for an input as long as this. Shorten it."
Part = TypeVar("Part")
_MAP_BYTES = 512 * 2**20  # of maps held at once, for models whose own code must be used


@dataclass(frozen=True, eq=False)
class Engine:
    """What runs. Safe to share between threads: nothing of a call is kept here.

    Attributes:
        name: for messages.
        holds_maps: the model's own attention code is used, and gives whole maps.
        serial: a lock where the model's own code keeps state between calls; else a context that does nothing.
        both: puts a picture into a text, where the model takes both.
    """

    name: str
    family: Family
    model: Any
    device: torch.device
    positions: tuple[Positions, ...]
    text: TextInput | None
    picture: PictureInput | None
    holds_maps: bool
    serial: contextlib.AbstractContextManager[Any]
    both: PicturePrompt | None = None
    sound: SoundInput | None = None

    @property
    def tokenizer(self) -> TextInput:
        """The text input. Raises HubError if the model takes pictures."""
        return self._needed(self.text, "{name} takes a picture, not a text.")

    @property
    def processor(self) -> PictureInput:
        """The picture input. Raises HubError if the model takes texts, or both together."""
        takes_both = "{name} takes a picture and a text together."
        return self._needed(self.picture, "{name} takes a text, not a picture." if self.both is None else takes_both)

    @property
    def prompt(self) -> PicturePrompt:
        """What puts a picture into a text. Raises HubError if the model takes one of them."""
        return self._needed(self.both, "{name} does not take a picture and a text together.")

    @property
    def sound_input(self) -> SoundInput:
        """The sound input. Raises HubError if the model takes texts or pictures."""
        return self._needed(self.sound, "{name} takes no sound.")

    def _needed(self, part: Part | None, otherwise: str) -> Part:
        if part is None:
            raise HubError(otherwise, name=self.name)
        return part

    def room(self, stack: str) -> int | None:
        """The most tokens a stack takes; None where nothing limits it.

        Its table of positions is the limit where it has one; else the length it was trained for.
        """
        if self.text is None:
            return None
        table = room_for_tokens(self.positions, stack)
        if table is not None:
            return table
        config = self.model.config.get_text_config(decoder=True)
        trained = getattr(config, "max_position_embeddings", None)
        return int(trained) if trained else self.tokenizer.max_tokens

    def encode(
        self, text: str, pair: str | None = None, *, most: int | None = None, target: bool = False
    ) -> dict[str, Int[Tensor, "1 tokens"]]:
        """What the model takes for a text, on its device.

        Args:
            most: the most tokens a host allows.
            target: the text is what the decoder of an encoder-decoder is to write.

        Raises:
            HubError: if it is empty, or longer than the model or the host allows.
        """
        inputs = self.tokenizer.encode(text, pair, target=target)
        stack = "decoder" if target or self.family.kind == "decoder" else "encoder"
        self.check_length(inputs["input_ids"].shape[1], self.room(stack), most)
        return {name: ids.to(self.device) for name, ids in inputs.items()}

    def check_length(self, count: int, room: int | None, most: int | None) -> None:
        """Refuse more tokens than the model takes (`room`), or a host allows (`most`).

        Raises:
            HubError: with both numbers.
        """
        fits, allowed = (_TEXT_FITS, _TEXT_ALLOWED) if self.both is None else (_BOTH_FIT, _BOTH_ALLOWED)
        if room is not None and count > room:
            raise HubError(fits, count=count, most=room)
        if most is not None and count > most:
            raise HubError(allowed, count=count, most=most)

    def recorded(self, inputs: dict[str, Tensor], num_keys: int, **options: Any) -> tuple[Any, Trace]:
        """The model's output and its trace, whole inputs at once and without a cache.

        Args:
            num_keys: about how many tokens there are, to judge whether maps that must be held would fit.

        Raises:
            HubError: if the maps would not fit, the memory does not suffice, or no attention was seen.
        """
        if self.holds_maps:
            self._check_maps(num_keys)
            options["output_attentions"] = True
        try:
            with record(
                kind=None if self.both is None else partial(PartialRecording, tower=self.both.tower_calls(inputs))
            ) as trace:
                result = self.model(**inputs, **options)
        except torch.OutOfMemoryError:
            raise HubError(_TOO_LITTLE_MEMORY) from None
        if self.holds_maps:
            trace = _trace_of_maps(result, self.family.stack)
        if not len(trace):
            raise HubError(
                "No attention of {name} could be seen: its code computes it in a way of its own.", name=self.name
            )
        return result, _layers_apart(trace)

    def again(self, inputs: Mapping[str, Any]) -> Any:
        """The model's output for what a recorded pass was given, without a recording.

        Raises:
            HubError: if the memory does not suffice.
        """
        try:
            with no_recording():
                return self.model(**inputs)
        except torch.OutOfMemoryError:
            raise HubError(_TOO_LITTLE_MEMORY) from None

    def _check_maps(self, num_keys: int) -> None:
        config = self.model.config
        nbytes = config.num_hidden_layers * config.num_attention_heads * num_keys**2 * 4
        if nbytes > _MAP_BYTES:
            longest = int(num_keys * (_MAP_BYTES / nbytes) ** 0.5)
            raise HubError(
                "The code of {name} gives only whole maps, {size} for this input. Give it at most about {most:,} "
                "tokens.",
                name=self.name,
                size=human_bytes(nbytes),
                most=longest,
            )


def _trace_of_maps(result: Any, stack: str | None) -> Trace:
    """The maps that a model's own code gave, under the names our attention would have given them."""
    kinds = {
        "attentions": (stack, "self"),
        "encoder_attentions": ("encoder", "self"),
        "decoder_attentions": ("decoder", "self"),
        "cross_attentions": ("decoder", "cross"),
    }
    with record() as trace:
        for name, (where, kind) in kinds.items():
            maps = getattr(result, name, None) or ()
            for layer, weights in enumerate(weights for weights in maps if weights is not None):
                record_weights(weights.float(), f"{where}.{layer}.{kind}")
    return trace


def _layers_apart(trace: Trace) -> Trace:
    """Layers that share their weights are one module called again and again (ALBERT): give each call its layer."""
    if not any("@" in site for site in trace.sites):
        return trace
    numbers: dict[tuple[str, str], int] = {}
    apart = Trace()
    for call in trace:
        layer = numbers.setdefault((call.stack, call.kind), 0)
        apart.add(call.source, f"{call.stack}.{layer}.{call.kind}")
        numbers[call.stack, call.kind] += 1
    return apart
