"""A loaded Hugging Face model: run it on a text, a pair, a translation, a picture or a sound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from viz_core.hub import contrastive as two_towers
from viz_core.hub import forward_passes as passes
from viz_core.hub.card import HubCard
from viz_core.hub.engine import Engine
from viz_core.hub.errors import HubError
from viz_core.hub.generation import GREEDY, Sampling, Writing
from viz_core.hub.positions import Positions
from viz_core.hub.run import HubRun, NextWord
from viz_core.hub.speech import transcribe
from viz_core.hub.token_text import Token
from viz_core.runtime.provenance import Provenance
from viz_core.sounds.sound import Sound
from viz_core.trace import Trace, recording_values

DEFAULT_NEW_TOKENS = {"decoder": 20, "vision-language": 20, "encoder-decoder": 64, "speech": 200}


@dataclass(frozen=True, eq=False)
class HubModel:
    """A model of Hugging Face. Safe to share between threads: nothing of a run is kept on it.

    Attributes:
        card: what there is to know of it.
        engine: what runs.
    """

    card: HubCard
    engine: Engine

    def __repr__(self) -> str:
        """Which model, how large, and where it runs, in a line."""
        layers = ", ".join(f"{count} {stack} layers" for stack, count in self.card.num_layers.items())
        return f"HubModel({self.card.name!r} on {self.card.device}: {layers} of {self.card.num_heads} heads)"

    @property
    def positions(self) -> tuple[Positions, ...]:
        """Its position schemes, with the numbers it really uses."""
        return self.engine.positions

    def run(
        self,
        text: str | None = None,
        *,
        text_pair: str | None = None,
        target: str | None = None,
        image: Image.Image | None = None,
        sound: Sound | None = None,
        max_new_tokens: int | None = None,
        sampling: Sampling = GREEDY,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        language: str | None = None,
        task: str | None = None,
    ) -> HubRun:
        """Run the model once, recorded. Models that write do so first; then one pass over all of it is recorded.

        Args:
            text: what it reads: an encoder, a decoder (the beginning) or an encoder-decoder (the source).
            text_pair: a second text, for encoders.
            target: what it shall write, instead of what it would: a continuation, a translation, what is said.
            image: a picture of any mode and size, for vision models and vision-language models; the latter put it where
                the text says "<image>", or before the text.
            sound: for speech models (`viz_core.sounds.open_sound.open_sound`).
            max_new_tokens: most it writes: 20 for decoders, 64 for encoder-decoders, 200 for speech models unless
                given; 0 lets a decoder only read.
            sampling: how it chooses words.
            max_tokens: the most tokens a host lets a text have, with what a decoder writes.
            max_seconds: it writes no longer than that.
            language: spoken in the sound, of `card.languages`; the model finds out by itself unless given.
            task: of `card.tasks`: "transcribe", or "translate" into English.

        Raises:
            HubError: if the input is not what this model takes, is empty or too long; the message says which.
            ValueError: if max_new_tokens is negative.
        """
        if max_new_tokens is not None and max_new_tokens < 0:
            raise ValueError(f"max_new_tokens: expected 0 or more, got {max_new_tokens}")
        self._check_inputs(text, text_pair, target, image, sound)
        self._check_told(language, task)
        kind = self.card.kind
        budget = DEFAULT_NEW_TOKENS.get(kind, 0) if max_new_tokens is None else max_new_tokens
        writing = Writing(budget, target, sampling, max_tokens, max_seconds, language, task)
        with self.engine.serial, torch.inference_mode():
            if sound is not None:
                found = transcribe(self.engine, sound, writing)
            else:
                found = self._pass(text or "", text_pair, image, writing)
        return replace(found, made=self.made_of(" / ".join(part for part in (text, text_pair, target) if part)))

    def run_each(
        self, texts: Sequence[str], *, max_new_tokens: int | None = None, max_tokens: int | None = None
    ) -> Iterator[HubRun | HubError]:
        """The run of each text, one after another, or what is wrong with it: nothing of a run is kept meanwhile.

        Args:
            max_new_tokens: as in `run`.
            max_tokens: as in `run`.

        Raises:
            ValueError: if max_new_tokens is negative.
        """
        for text in texts:
            try:
                yield self.run(text, max_new_tokens=max_new_tokens, max_tokens=max_tokens)
            except HubError as error:
                yield error

    @torch.inference_mode()
    def again(self, run: HubRun) -> Float[Tensor, "..."]:
        """The output of the pass that a run recorded, done again: `run.output`, unless heads are edited meanwhile."""
        with self.engine.serial:
            return passes.output_again(self.engine, run)

    @torch.inference_mode()
    def recorded_again(self, run: HubRun) -> Trace:
        """The trace of the pass that a run recorded, done again with its values kept."""
        with self.engine.serial, recording_values():
            return self.engine.recorded(dict(run.inputs), len(run.tokens))[1]

    def read(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """Tokens of its vocabulary as people read them.

        Raises:
            HubError: if it takes pictures.
        """
        return self.engine.tokenizer.read(ids)

    @property
    def class_names(self) -> Mapping[int, str]:
        """The classes of a model that sorts, by their number."""
        return {int(number): str(name) for number, name in self.engine.model.config.id2label.items()}

    def made_of(self, text: str = "") -> Provenance:
        """What a file says of a run of this model on a text."""
        return Provenance(self.card.name, self.card.revision, text)

    def next_words(
        self, run: HubRun, position: int = -1, count: int = 10, temperature: float = 1.0
    ) -> tuple[NextWord, ...]:
        """The likeliest words after a token: p = softmax(logits / temperature), the largest first.

        Args:
            position: among those `run.output` has logits for; -1 is the last.

        Raises:
            ValueError: if the model does not write, or temperature is not positive.
            IndexError: if the run has no logits for this position.
        """
        if self.engine.family.head != "words":
            raise ValueError(f"next_words: expected a model that writes, got {self.card.architecture}")
        if temperature <= 0:
            raise ValueError(f"temperature: expected above 0, got {temperature}")
        if not -len(run.output) <= position < len(run.output):
            raise IndexError(f"position: expected one of {len(run.output)}, got {position}")
        logits = run.output[position]
        probabilities = (logits / temperature).softmax(dim=-1)
        top = probabilities.topk(min(count, len(probabilities)))
        words = [self.read([number])[0] for number in top.indices.tolist()]
        values = zip(words, top.values.tolist(), logits[top.indices].tolist(), strict=True)
        return tuple(NextWord(*value) for value in values)

    def _pass(self, text: str, pair: str | None, image: Image.Image | None, writing: Writing) -> HubRun:
        """One recorded run on inputs that were checked."""
        if image is not None and self.card.kind == "dual-encoder":
            return two_towers.compare(self.engine, text, image, writing.max_tokens)
        if image is not None and self.card.kind == "vision-language":
            return passes.tell_of_picture(self.engine, text, image, writing)
        if image is not None:
            return passes.look_at_picture(self.engine, image)
        if self.card.kind == "encoder":
            return passes.read_text(self.engine, text, pair, writing.max_tokens)
        way = passes.continue_text if self.card.kind == "decoder" else passes.translate_text
        return way(self.engine, text, writing)

    def _check_told(self, language: str | None, task: str | None) -> None:
        known = (*self.card.languages, *self.card.tasks)
        options = [(language, self.card.languages), (task, self.card.tasks)]
        for asked in (asked for asked, offered in options if asked is not None and asked not in offered):
            if not known:
                raise HubError("{name} cannot be told a language or a task.", name=self.card.name)
            some = ", ".join(known)
            raise HubError("{name} can be told {known}, not {asked}.", name=self.card.name, known=some, asked=asked)

    def _check_inputs(
        self, text: str | None, pair: str | None, target: str | None, image: Image.Image | None, sound: Sound | None
    ) -> None:
        name, kind = self.card.name, self.card.kind
        if (sound is not None) != (kind == "speech") or (sound is not None and (image, text, pair) != (None,) * 3):
            hears = "{name} takes a sound, and no text or picture."
            raise HubError(hears if kind == "speech" else "{name} takes no sound.", name=name)
        if kind == "vision":
            if image is None or any(given is not None for given in (text, pair, target)):
                raise HubError("{name} takes a picture, and no text.", name=name)
            return
        if kind in ("vision-language", "dual-encoder") and image is None:
            raise HubError("{name} takes a picture and a text together: bring a picture.", name=name)
        if image is not None and kind not in ("vision-language", "dual-encoder"):
            raise HubError("{name} takes a text, not a picture.", name=name)
        if text is None and sound is None:
            raise HubError("There is nothing to read yet: type a text.")
        if pair is not None and kind != "encoder":
            raise HubError("{name} takes one text; only encoders take a pair.", name=name)
        if target is not None and kind in ("encoder", "dual-encoder"):
            raise HubError("{name} only reads: it writes no translation or continuation.", name=name)
        if target is not None and not target.strip():
            raise HubError("There is nothing to write: type the target, or leave the choice to the model.")
