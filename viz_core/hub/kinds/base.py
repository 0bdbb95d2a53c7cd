"""What all kinds of models have in common, and those with a tokenizer."""

import contextlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.hub.runs.positions import Positions
from viz_core.hub.runs.run import HubRun, Label, RunInputs
from viz_core.hub.runs.token_text import Token
from viz_core.hub.runs.tokenizers import TextInput, load_tokenizer
from viz_core.hub.store import HubError, human_bytes
from viz_core.hub.store.files import LocalModel
from viz_core.hub.transformers_internals import Task, has_model_for
from viz_core.trace import Trace, no_recording, record


@dataclass(frozen=True)
class ConfigFacts:
    """A config, with what transformers can do with its model type."""

    config: Any
    name: str  # of the model, for messages
    architecture: str  # class of the model, like "BertForMaskedLM"; "" where the config names none

    @property
    def model_type(self) -> str:
        """The family, like "bert"."""
        return str(self.config.model_type)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether it has two stacks."""
        return bool(getattr(self.config, "is_encoder_decoder", False))

    @property
    def has_vision_config(self) -> bool:
        """Whether a vision tower stands within the model."""
        return hasattr(self.config, "vision_config")

    def has_model_for(self, *tasks: Task) -> bool:
        """Whether transformers has a model of this type for one of these tasks."""
        return any(has_model_for(task, self.config.model_type) for task in tasks)


Head = Literal["labels", "words", "mask", ""]
"""Output layer of a model: classes of its whole input, the next word, masked words, or none."""

Feature = Literal["lens", "switches", "window", "hidden-tokens", "similarities", "vision-chapter"]
"""What the lab can show beside the maps: predictions after each layer, heads switched off, perplexity in a
window, single tokens hidden, cosines of a text with patches, the model in the vision chapter."""

_MAP_BYTES = 512 * 2**20  # of maps held at once, for models whose own code must be used
_LOGIT_BYTES = 64 * 2**20  # of logits that a run stores
_MAX_LABELS = 20
_TOO_LITTLE_MEMORY = "The memory does not suffice for an input as long as this. Shorten it."


@dataclass(frozen=True)
class InputControl:
    """A control with which a page asks for inputs of a model: a text that chapters share, a line, an area, a picture, a
    sound, language and task of a sound, or how much and how to write."""

    name: str  # its key, in the address too, and that of its label
    widget: Literal["shared-text", "line", "area", "picture", "sound", "speech-options", "writing"]
    field: str = ""  # of `RunInputs` that it fills; "" for those that fill options
    initial: str = ""  # section of the page's words with the text it begins with
    placeholder: str = ""  # section of the page's words shown while it is empty
    least: int = 0  # fewest new tokens, of "writing"
    default: int = 0  # new tokens, of "writing"


@dataclass(frozen=True, eq=False)
class ModelKind(ABC):
    """A loaded model of one kind: inputs, how it runs, what it offers. Threads may share it: no run changes it."""

    name: ClassVar[str]  # of the kind, as cards and words have it
    order: ClassVar[int]  # kinds with smaller numbers are tried first where several recognise a config
    stack: ClassVar[str | None]  # what the sites of its one stack of layers begin with; None for encoder and decoder
    inputs: ClassVar[frozenset[str]]  # fields of `RunInputs`
    input_label: ClassVar[str] = "text"  # section "reads-..." of the page's words that says what goes in
    controls: ClassVar[tuple[InputControl, ...]] = ()  # with which a page asks for inputs
    features: ClassVar[frozenset[Feature]] = frozenset()  # what the lab can show of it
    takes_token_ids: ClassVar[bool] = False  # in place of a text; and a tokenizer of the caller's own
    in_batches: ClassVar[bool] = False  # whether several texts run in one pass, padded at the end
    new_tokens: ClassVar[int] = 0  # most tokens that it writes unless told; 0 where it does not write
    picture_text_types: ClassVar[tuple[str, ...]] = ()  # model types for which it takes a picture and a text
    input_part: ClassVar[str] = "tokenizer"  # what is loaded beside the weights, for messages
    vision_refusal: ClassVar[str] = "{name} takes a text, not a picture."  # of a page for vision models
    _does_not_fit: ClassVar[str] = "This text has {count:,} tokens; the model takes at most {most:,}. Shorten it."
    _not_allowed: ClassVar[str] = "This text has {count:,} tokens; at most {most:,} are allowed here. Shorten it."

    model_name: str  # for messages
    head: Head
    model: Any
    device: torch.device
    positions: tuple[Positions, ...]
    holds_maps: bool  # the model's own attention code is used, and gives whole maps
    serial: contextlib.AbstractContextManager[Any]  # a lock where the model's own code keeps state between calls

    @classmethod
    @abstractmethod
    def recognise(cls, facts: ConfigFacts) -> tuple[str, Head] | None:
        """Automatic class of transformers and head for a config of this kind; None for any other."""

    @classmethod
    @abstractmethod
    def load_inputs(cls, place: LocalModel, model: Any) -> dict[str, Any]:
        """The fields of this kind beyond the common ones: tokenizer, image processor and the like."""

    @abstractmethod
    def run(self, inputs: RunInputs) -> HubRun:
        """Write where the model writes, then record one pass over everything."""

    @classmethod
    def writes(cls) -> bool:
        """Whether models of this kind write."""
        return cls.new_tokens > 0

    @classmethod
    def has_lens(cls, head: Head) -> bool:
        """Whether states after each layer can be read by the output layer of a model with this head."""
        return "lens" in cls.features and head in ("words", "mask")

    @classmethod
    def text_control(cls) -> str:
        """Key of the control for the text that it reads; "" where it reads none."""
        return next((control.name for control in cls.controls if control.field == "text"), "")

    @classmethod
    def check_payloads(cls, inputs: RunInputs, name: str) -> None:
        """Refuse texts, pictures and sounds that this kind does not take, or lacks."""
        given, takes = inputs.payloads, cls.inputs
        if "video" in given - takes:
            raise HubError("{name} takes no video.", name=name)
        if {"video", "image"} <= given:
            raise HubError("{name} takes a picture or a video, not both.", name=name)
        takes -= {"image"} if "video" in given else {"video"}
        if "sound" in takes and ("sound" not in given or given - takes):
            raise HubError("{name} takes a sound, and no text or picture.", name=name)
        if "sound" in given - takes:
            raise HubError("{name} takes no sound.", name=name)
        if takes == {"image"}:
            if given != takes:
                raise HubError("{name} takes a picture, and no text.", name=name)
            return
        if inputs.token_ids is not None and not cls.takes_token_ids:
            raise HubError("{name} takes a text, not token ids.", name=name)
        if "image" in takes - given:
            raise HubError("{name} takes a picture and a text together: bring a picture.", name=name)
        if "image" in given - takes:
            raise HubError("{name} takes a text, not a picture.", name=name)
        if "text" in takes - given:
            raise HubError("There is nothing to read yet: type a text.")
        if "text_pair" in given - takes:
            raise HubError("{name} takes one text; only encoders take a pair.", name=name)
        if "target" in given - takes:
            raise HubError("{name} only reads: it writes no translation or continuation.", name=name)
        if inputs.target is not None and not inputs.target.strip():
            raise HubError("There is nothing to write: type the target, or leave the choice to the model.")

    def card_fields(self) -> dict[str, Any]:
        """Fields of the model's card that depend on its kind."""
        return {"max_tokens": self.max_positions(self.stack or "encoder")}

    def read(self, ids: Sequence[int]) -> tuple[Token, ...]:  # noqa: ARG002  # kinds without a vocabulary refuse
        """Tokens of the vocabulary as people read them."""
        raise HubError("{name} takes a picture, not a text.", name=self.model_name)

    @property
    def class_names(self) -> Mapping[int, str]:
        """Names of the classes of a model that classifies, by their numbers."""
        return {int(number): str(name) for number, name in self.model.config.id2label.items()}

    def max_positions(self, stack: str) -> int | None:  # noqa: ARG002  # kinds with texts have limits by stack
        """The most tokens a stack takes; None where nothing limits it."""
        return None

    def check_length(self, count: int, longest: int | None, most: int | None) -> None:
        """Refuse more tokens than the model takes (`longest`), or a host allows (`most`)."""
        if longest is not None and count > longest:
            raise HubError(self._does_not_fit, count=count, most=longest)
        if most is not None and count > most:
            raise HubError(self._not_allowed, count=count, most=most)

    def recording(self, inputs: Mapping[str, Any]) -> Any:  # noqa: ARG002  # of all, unless a kind leaves some out
        """The class of trace that records a pass on these inputs; None for the usual one."""
        return None

    def recorded(self, inputs: dict[str, Tensor], num_keys: int, **options: Any) -> tuple[Any, Trace]:
        """The model's output and its trace, whole inputs at once and without a cache.

        Args:
            num_keys: about how many tokens there are, to judge whether whole maps would fit.
        """
        if self.holds_maps:
            self._check_maps(num_keys)
        try:
            with record(kind=self.recording(inputs)) as trace:
                result = self.model(**inputs, **options)
        except torch.OutOfMemoryError:
            raise HubError(_TOO_LITTLE_MEMORY) from None
        if not len(trace):
            raise self.no_attention_error()
        return result, trace

    def recorded_again(self, run: HubRun) -> Trace:
        """The trace of the pass of a run, done again."""
        return self.recorded(dict(run.inputs), len(run.tokens))[1]

    def no_attention_error(self) -> HubError:
        """What is wrong with a model none of whose attention was recorded."""
        return HubError(
            "No attention of {name} could be seen: its code computes it in its own way.", name=self.model_name
        )

    def rerun(self, inputs: Mapping[str, Any]) -> Any:
        """The model's output for the inputs of a recorded pass, without a recording."""
        try:
            with no_recording():
                return self.model(**inputs)
        except torch.OutOfMemoryError:
            raise HubError(_TOO_LITTLE_MEMORY) from None

    def output_again(self, run: HubRun) -> Float[Tensor, "..."]:
        """`run.output`, computed again."""
        return self.output_of(self.rerun(run.inputs))[0]

    def output_of(self, result: Any) -> tuple[Float[Tensor, "..."], tuple[Label, ...]]:
        """Logits of words, last hidden states, or logits of classes; and the classes by falling probability."""
        if self.head == "words":
            return self.last_logits(result.logits), ()
        if self.head != "labels":
            states = result.hidden_states[-1] if self.head == "mask" else result.last_hidden_state
            return states[0].float().cpu(), ()
        logits = result.logits[0].float().cpu()
        if getattr(self.model.config, "problem_type", None) == "regression" or len(logits) == 1:
            return logits, ()
        top = logits.softmax(dim=-1).topk(min(_MAX_LABELS, len(logits)))
        names, found = self.class_names, zip(top.indices.tolist(), top.values.tolist(), strict=True)
        return logits, tuple(Label(names.get(number, str(number)), probability) for number, probability in found)

    def last_logits(self, logits: Tensor) -> Float[Tensor, "positions words"]:
        """The logits of as many of the last positions as a run stores."""
        return logits[0, -self.num_logits(logits.shape[1]) :].float().cpu()

    def num_logits(self, num_tokens: int) -> int:
        """Of how many of the last tokens a run stores the logits."""
        words = self.model.config.get_text_config(decoder=True).vocab_size
        return max(1, min(num_tokens, _LOGIT_BYTES // (4 * words)))

    def on_device(self, value: Tensor) -> Tensor:
        """An input on the model's device; pixels and spectrograms in its precision."""
        return value.to(self.device, self.model.dtype) if value.is_floating_point() else value.to(self.device)

    def _check_maps(self, num_keys: int) -> None:
        config = self.model.config
        nbytes = config.num_hidden_layers * config.num_attention_heads * num_keys**2 * 4
        if nbytes > _MAP_BYTES:
            raise HubError(
                "The code of {name} gives only whole maps, {size} for this input. Give it at most about {most:,} "
                "tokens.",
                name=self.model_name,
                size=human_bytes(nbytes),
                most=int(num_keys * (_MAP_BYTES / nbytes) ** 0.5),
            )


@dataclass(frozen=True, eq=False)
class TextKind(ModelKind):
    """A model with a tokenizer."""

    tokenizer: TextInput

    @classmethod
    def load_inputs(cls, place: LocalModel, model: Any) -> dict[str, Any]:
        return {"tokenizer": load_tokenizer(place, model, or_ids=cls.takes_token_ids)[1]}

    def card_fields(self) -> dict[str, Any]:
        size = self.tokenizer.vocabulary_size
        return super().card_fields() | {"tokenizer": self.tokenizer.name, "vocabulary_size": size}

    def read(self, ids: Sequence[int]) -> tuple[Token, ...]:
        return self.tokenizer.read(ids)

    def max_positions(self, stack: str) -> int | None:
        """The most tokens a stack takes: rows of its tables of positions, else the length it was trained for."""
        tables = [len(p.values) for p in self.positions if p.scheme in ("learned", "sinusoidal") and p.stack == stack]
        if tables:
            return min(tables)
        config = self.model.config.get_text_config(decoder=True)
        trained = getattr(config, "max_position_embeddings", None)
        return int(trained) if trained else self.tokenizer.max_tokens

    def max_decoder_positions(self, most: int | None) -> int | None:
        """The most tokens of the decoder where a host allows `most`; None for any number."""
        return min((limit for limit in (self.max_positions("decoder"), most) if limit is not None), default=None)

    def encode(
        self, text: str | Sequence[int], pair: str | None = None, *, most: int | None = None, target: bool = False
    ) -> dict[str, Int[Tensor, "1 tokens"]]:
        """A text, ids, a pair, or a decoder's target as ids on the model's device; refused if there are too many."""
        if isinstance(text, str):
            inputs = self.tokenizer.encode(text, pair, target=target)
        else:
            self.tokenizer.check_ids(text)
            inputs = {"input_ids": torch.tensor([list(text)])}
        stack = "decoder" if target else self.stack or "encoder"
        self.check_length(inputs["input_ids"].shape[1], self.max_positions(stack), most)
        taken = inspect.signature(self.model.forward).parameters  # CLIP takes no types, which some tokenizers make
        if "token_type_ids" not in taken and not any(each.kind == each.VAR_KEYWORD for each in taken.values()):
            inputs.pop("token_type_ids", None)
        return {name: ids.to(self.device) for name, ids in inputs.items()}

    def encode_prompt(self, text: str | Sequence[int], most: int | None) -> dict[str, Tensor]:
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
