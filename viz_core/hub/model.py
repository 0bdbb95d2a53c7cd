"""A loaded Hugging Face model: run it on a text, a pair, a translation, a picture or a sound."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.hub.card import HubCard
from viz_core.hub.kinds import ModelKind
from viz_core.hub.runs.positions import Positions
from viz_core.hub.runs.run import HubRun, NextWord, RunInputs
from viz_core.hub.runs.token_text import Token
from viz_core.hub.store.checks import HubError, attempt
from viz_core.runtime.provenance import Provenance
from viz_core.trace import Trace, recording_values


@dataclass(frozen=True, eq=False)
class HubModel:
    """A model of Hugging Face. Threads may share it: a run changes nothing of it.

    Attributes:
        card: its description.
        engine: the loaded model, as its kind runs it.
    """

    card: HubCard
    engine: ModelKind

    def __repr__(self) -> str:
        """Which model, how large, and where it runs, in a line."""
        layers = ", ".join(f"{count} {stack} layers" for stack, count in self.card.num_layers.items())
        return f"HubModel({self.card.name!r} on {self.card.device}: {layers} of {self.card.num_heads} heads)"

    @property
    def network(self) -> Any:
        """The torch module."""
        return self.engine.model

    @property
    def positions(self) -> tuple[Positions, ...]:
        """Its position schemes, with their values."""
        return self.engine.positions

    def run(self, text: str | None = None, **options: Any) -> HubRun:
        """Run the model once, recorded. Models that write do so first; then one pass over all of it is recorded.

        Args:
            text: what it reads.
            options: what else it is given (text_pair, target, image, sound), and limits: see `RunInputs`.

        Raises:
            HubError: if the input is not what this model takes, is empty or too long; the message says which.
            ValueError: if max_new_tokens is negative.
        """
        return self.run_inputs(RunInputs(text, **options))

    def run_inputs(self, inputs: RunInputs) -> HubRun:
        """The same as `run`, of inputs that are gathered already."""
        self.engine.check_payloads(inputs, self.card.name)
        self._check_speech_options(inputs.language, inputs.task)
        with self.engine.serial, torch.inference_mode():
            most = self.engine.new_tokens if inputs.max_new_tokens is None else inputs.max_new_tokens
            found = self.engine.run(replace(inputs, max_new_tokens=most))
        texts = (inputs.text, inputs.text_pair, inputs.target)
        return replace(found, made=self.made_of(" / ".join(text for text in texts if text)))

    def run_each(
        self, texts: Sequence[str], *, max_new_tokens: int | None = None, max_tokens: int | None = None
    ) -> Iterator[HubRun | HubError]:
        """The run of each text in turn, limited as in `run`, or what is wrong with it. No run is stored."""
        for text in texts:
            yield attempt(self.run, text, max_new_tokens=max_new_tokens, max_tokens=max_tokens)

    @torch.inference_mode()
    def rerun(self, run: HubRun) -> Float[Tensor, "..."]:
        """The output of a run's recorded pass, computed again: `run.output`, unless heads are edited."""
        with self.engine.serial:
            return self.engine.output_again(run)

    @torch.inference_mode()
    def recorded_again(self, run: HubRun) -> Trace:
        """The trace of a run's recorded pass, computed again with its values."""
        with self.engine.serial, recording_values():
            return self.engine.recorded_again(run)

    def read(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """Tokens of its vocabulary as people read them.

        Raises:
            HubError: if it takes pictures.
        """
        return self.engine.read(ids)

    @property
    def class_names(self) -> Mapping[int, str]:
        """The classes of a model that classifies, by their numbers."""
        return self.engine.class_names

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
        if self.card.head != "words":
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

    def _check_speech_options(self, language: str | None, task: str | None) -> None:
        known = (*self.card.languages, *self.card.tasks)
        requested = [(language, self.card.languages), (task, self.card.tasks)]
        for value in (value for value, offered in requested if value is not None and value not in offered):
            if not known:
                raise HubError("{name} offers no choice of language or task.", name=self.card.name)
            some = ", ".join(known)
            raise HubError("{name} accepts {known}, not {asked}.", name=self.card.name, known=some, asked=value)
