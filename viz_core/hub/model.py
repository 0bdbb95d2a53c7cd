"""A loaded Hugging Face model and its description: run it on a text, a pair, a translation, a picture or a sound."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.hub.instrument import coverage
from viz_core.hub.kinds import Head, ModelKind, kind_named
from viz_core.hub.runs.positions import Positions
from viz_core.hub.runs.run import HubRun, NextWord, RunInputs
from viz_core.hub.runs.token_text import Token
from viz_core.hub.store import HubError, attempt
from viz_core.hub.store.files import SHIPPED_FOLDER, LocalModel, ModelFiles
from viz_core.hub.verify import verify_maps
from viz_core.runtime.assets import Provenance
from viz_core.runtime.device import describe_device
from viz_core.trace import Trace, recording_values
from viz_core.trace.coverage import LayerCoverage


@dataclass(frozen=True, kw_only=True)
class HubCard:
    """A loaded model, described.

    Attributes:
        name: as it was asked for.
        source: "shipped", "package", "folder" or "hub".
        revision: the commit, the package's version, or "" for a folder.
        head: "labels" where it sorts its input into classes, "words" where it writes, "mask" where an encoder fills in
            words that are masked, "" else.
        architecture: the class that runs it, like "BertModel".
        model_type: the family, like "bert".
        num_layers: by stack: {"encoder": 6, "decoder": 6}.
        num_heads: query heads of a layer.
        num_key_heads: key heads of a layer; fewer than num_heads where queries are grouped.
        width: of the hidden states.
        num_parameters: each counted once.
        positions: schemes in use: "learned", "sinusoidal", "rotary", "t5", "alibi"; () for none that is known.
        window: the setting of a sliding window, whatever layers make of it (`viz_core.lab.runs.windows`); None without.
        tokenizer: its algorithm, like "WordPiece"; "" for vision models.
        vocabulary_size: of the tokenizer; 0 for vision models.
        picture_size, patch_size: height and width in pixels of what a vision model sees; None for the others.
        max_tokens: of what the model reads; None where nothing limits it.
        licence: as its README says, or "".
        device: where it runs, for people.
        precision: like "float32".
        memory: bytes its parameters and buffers take.
        recording: "queries and keys" where maps are recomputed on demand; "maps" where the model's own code
            gives whole maps, which are held, so that inputs must be shorter.
        picture_channels: 1 for a model that sees in grey.
        prompt: how a prompt of a vision-language model looked in its training, "{text}" for what is asked and "<image>"
            for the picture; "" for the others. It is written down here: a template of the repository is never run.
        takes_video: whether it was trained on videos too.
        both_ways: whether a decoder reads its prompt in both directions, and only what it writes sees no future.
        sound_seconds: how much a speech model hears at once; None for the others.
        languages: spoken languages that a speech model accepts as a setting, as codes like "en"; () where it has one.
        tasks: that it accepts as a setting: "transcribe", "translate" into English; () where it has only one.
        unrecorded: its layers, and parts of layers, that have no map, with the reason.
        unused: parts of the folder's weights that the architecture has no place for, such as heads of another one.
        not_finite: weights with NaN or infinity, the first few: maps that depend on them are not defined.
    """

    name: str
    source: str
    revision: str
    kind: str
    head: Head
    architecture: str
    model_type: str
    num_layers: dict[str, int]
    num_heads: int
    num_key_heads: int
    width: int
    num_parameters: int
    positions: tuple[str, ...]
    window: int | None
    tokenizer: str = ""
    vocabulary_size: int = 0
    picture_size: tuple[int, int] | None = None
    patch_size: tuple[int, int] | None = None
    max_tokens: int | None
    licence: str
    device: str
    precision: str
    memory: int
    recording: Literal["queries and keys", "maps"]
    picture_channels: int = 3
    prompt: str = ""
    takes_video: bool = False
    both_ways: bool = False
    sound_seconds: float | None = None
    languages: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    unrecorded: tuple[LayerCoverage, ...] = ()
    unused: tuple[str, ...] = ()
    not_finite: tuple[str, ...] = ()

    @property
    def kind_class(self) -> type[ModelKind]:
        """Its kind, as registered: what it takes and offers."""
        return kind_named(self.kind)


def describe(
    place: LocalModel, files: ModelFiles, engine: ModelKind, sites: tuple[str, ...], unused: tuple[str, ...] = ()
) -> HubCard:
    """The card of a loaded model."""
    model = engine.model
    config = model.config.get_text_config(decoder=True)
    tensors = {t.untyped_storage().data_ptr(): t for t in (*model.parameters(), *model.buffers())}
    heads = getattr(config, "num_attention_heads", None) or config.num_heads  # of a model without a softmax
    return HubCard(
        name=place.name,
        source="shipped" if place.path.parent == SHIPPED_FOLDER else "hub" if place.source == "cache" else place.source,
        revision=place.revision,
        kind=engine.name,
        head=engine.head,
        architecture=type(model).__name__,
        model_type=model.config.model_type,
        num_layers=_count_layers(sites),
        num_heads=heads,
        num_key_heads=getattr(config, "num_key_value_heads", None) or heads,
        width=config.hidden_size,
        num_parameters=sum(p.numel() for p in model.parameters()),
        positions=tuple(dict.fromkeys(p.scheme for p in engine.positions)),
        window=getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None,
        licence=files.licence,
        device=describe_device(engine.device),
        precision=str(model.dtype).removeprefix("torch."),
        memory=sum(t.untyped_storage().nbytes() for t in tensors.values()),
        recording="maps" if engine.holds_maps else "queries and keys",
        picture_channels=getattr(config, "num_channels", 3),
        unrecorded=tuple(row for row in coverage(model, engine.stack) if row.reason),
        unused=unused,
        not_finite=tuple(islice((n for n, p in model.named_parameters() if not _is_finite(p)), 3)),
        **engine.card_fields(),
    )


def _is_finite(weights: Tensor) -> bool:
    """Whether no number is NaN or infinite: then their sum of absolute values is finite, and no array is made."""
    return bool(torch.isfinite(torch.linalg.vector_norm(weights.detach(), ord=torch.inf)))


def _count_layers(sites: tuple[str, ...]) -> dict[str, int]:
    layers: dict[str, set[str]] = {}
    for site in sites:
        stack, *place = site.split(".")[:-1]
        if numbers := [part for part in place if part.isdecimal()]:  # else outside of the lists of layers
            layers.setdefault(stack, set()).add(".".join(numbers))
    return {stack: len(numbers) for stack, numbers in layers.items()}


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
            options: what else it is given (token_ids, text_pair, target, image, sound), and limits: see `RunInputs`.

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
            if isinstance(self.network, torch.nn.Module) and found.inputs:
                verify_maps(self.network, found.trace, found.inputs)
        ids = None if inputs.token_ids is None else " ".join(map(str, inputs.token_ids))
        texts = (inputs.text, ids, inputs.text_pair, inputs.target)
        if found.num_unknown > sum(not token.special for token in found.tokens[: found.num_prompt_tokens]):
            warnings.warn(
                f"{self.card.name}: {found.num_unknown} of {found.num_prompt_tokens} tokens are not in its vocabulary; "
                "is the tokenizer the model's own, and the text what it reads?",
                stacklevel=3,
            )
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
