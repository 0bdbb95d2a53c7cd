"""What a model of the hub is run on, and the result: tokens, trace and output."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from jaxtyping import Float
from PIL import Image
from torch import Tensor

from viz_core.hub.runs.generation import GREEDY, Sampling
from viz_core.hub.runs.pictures import PatchGrid
from viz_core.hub.runs.sound_input import SoundFeatures
from viz_core.hub.runs.token_text import Token
from viz_core.images.open_image import Video
from viz_core.runtime.assets import UNKNOWN, Provenance
from viz_core.runtime.hooks import show
from viz_core.sounds.sound import Sound
from viz_core.trace import AttentionCall, Trace

SINK = Token(-1, "sink", "sink", special=True)
"""The key that a model with learned sinks has before all tokens (`viz_core.hub.attention.with_sink`)."""


@dataclass(frozen=True)
class Label:
    """A class and its probability."""

    text: str
    probability: float


@dataclass(frozen=True)
class NextWord:
    """A possible next word, its probability at the requested temperature, and its logit."""

    token: Token
    probability: float
    logit: float


@dataclass(frozen=True, eq=False)
class Frame:
    """A picture as a vision tower sees it.

    Attributes:
        image: as the tower saw it.
        grid: rows and columns of patches.
        tokens: special ones first, then patches row by row.
    """

    image: Image.Image
    grid: tuple[int, int]
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class Maps:
    """The attention maps of one kind: one call a layer, the same tokens in all.

    Attributes:
        id: "encoder-self", "decoder-self", "decoder-cross", "vision-self", or "vision-head-cross" of a pooling head.
        query_tokens: one for each row. Row i of a decoder that translates is the step that writes its token.
        key_tokens: one for each column; the first is SINK where the model has learned sinks.
        calls: first layer to last.
        frame: the picture whose patches the tokens are, of a vision tower beside a text.
    """

    id: str
    query_tokens: tuple[Token, ...]
    key_tokens: tuple[Token, ...]
    calls: tuple[AttentionCall, ...]
    frame: Frame | None = None

    @property
    def text_keys(self) -> tuple[Token, ...]:
        """The keys that are tokens: all but the learned sink."""
        return self.key_tokens[1:] if self.key_tokens[:1] == (SINK,) else self.key_tokens

    def __repr__(self) -> str:
        """Their kind and size, in a line."""
        sizes = f"{len(self.query_tokens)} queries, {len(self.key_tokens)} keys"
        return f"Maps({self.id!r}: {len(self.calls)} layers, {sizes})"


@dataclass(frozen=True, eq=False)
class HubRun:
    """One run, recorded.

    Attributes:
        tokens: what the model read: the text (with what a decoder wrote), the picture's patches, or moments of a sound.
            Where a text has a picture in it, its patches stand among the words, as "r3c5": row 3, column 5 of their
            grid.
        decoder_tokens: what the decoder of an encoder-decoder read, step by step; else ().
        target_tokens: what it wrote at these steps; else ().
        num_prompt_tokens: how many of `tokens` were given; a decoder wrote the rest.
        text: what was written, as text; "" where the model does not write.
        complete: False where max_new_tokens or the time limit cut the text short.
        output: float32 on the CPU. An encoder's or vision model's last hidden states (tokens, width), or its
            logits (classes,) where it has a head that sorts; of a model that writes, the logits of the word
            after each token (positions, words), for as many of the last positions as fit 64 MB; of one that compares a
            picture with a text, cosines of the text with it and its tokens (`viz_core.hub.kinds.dual_encoder`).
        labels: classes by falling probability, where the model sorts.
        grid: rows and columns of patches; None for text.
        image: the picture as the model saw it, or beside a text as it was given; None for text.
        trace: every attention call.
        made: by which model, of which text.
        inputs: what the recorded pass was given, on the model's device, to repeat it.
        num_unknown: tokens read that stand for what the vocabulary does not have.
        prompt: the text as the model was given it, "<image>" where the picture stands; "" without a picture in a text.
        patches: where the picture's patches are among `tokens`, and on the picture.
        frame: what the vision tower beside a text saw, where its maps are recorded; of a picture in tiles all of it
            once more, small, and of a video the last frame: the maps of tiles and other frames are not kept.
        sound: as the model was given it; None for text and pictures.
        video: as it was given, instead of `image`; each of `patches` says which of its frames it lies on.
    """

    tokens: tuple[Token, ...]
    trace: Trace
    output: Float[Tensor, "..."]
    num_prompt_tokens: int = 0
    decoder_tokens: tuple[Token, ...] = ()
    target_tokens: tuple[Token, ...] = ()
    text: str = ""
    complete: bool = True
    labels: tuple[Label, ...] = ()
    grid: tuple[int, int] | None = None
    image: Image.Image | None = None
    made: Provenance = UNKNOWN
    inputs: Mapping[str, Any] = field(default_factory=dict, repr=False)
    num_unknown: int = 0
    prompt: str = ""
    patches: tuple[PatchGrid, ...] = ()
    frame: Frame | None = None
    sound: SoundFeatures | None = None
    video: Video | None = None

    def __repr__(self) -> str:
        """Input and output in one line."""
        read = f"{len(self.tokens)} tokens" if self.grid is None else f"{self.grid[0]} x {self.grid[1]} patches"
        outcome = repr(self.text) if self.text else repr(self.labels[0].text) if self.labels else ""
        read += f" ({self.num_unknown} unknown)" if self.num_unknown else ""
        parts = [read, *([outcome] if outcome else []), f"output {tuple(self.output.shape)}", repr(self.trace)]
        return f"HubRun({', '.join(parts)})"

    def view(self) -> Any:
        """Return the attention view of all maps, as `viz_core.view` does."""
        return show(self)

    @property
    def maps(self) -> tuple[Maps, ...]:
        """The trace sorted by kind, each kind with its tokens, in the order of the first calls."""
        kinds: dict[str, list[AttentionCall]] = {}
        for call in self.trace:
            name = name_outside(call)
            kinds.setdefault("-".join(filter(None, (call.stack, name[:16], call.kind))), []).append(call)
        two_stacks = bool(self.decoder_tokens)
        patches = () if self.frame is None else self.frame.tokens
        sides = {
            "vision-self": (patches, patches),
            "decoder-cross": (self.target_tokens, self.tokens),
            "decoder-self": (self.target_tokens, self.decoder_tokens) if two_stacks else (self.tokens, self.tokens),
        }
        found = []
        for id_, calls in kinds.items():
            read = patches if calls[0].stack == "vision" else self.tokens
            queries, keys = sides.get(id_, (read, read))
            if name := name_outside(calls[0]):
                queries = _tokens(name, queries, calls[0].num_queries)
                keys = _tokens("key", keys, calls[0].num_keys)
            if all(call.num_keys == len(keys) + 1 for call in calls):
                keys = (SINK, *keys)
            frame = self.frame if calls[0].stack == "vision" else None
            found.append(Maps(id_, queries, keys, tuple(sorted(calls, key=lambda call: call.layer)), frame))
        return tuple(found)


def name_outside(call: AttentionCall) -> str:
    """Return how a call outside of the lists of layers is called: "head" of "vision.head.cross"; "" of a layer's."""
    parts = call.site.partition("@")[0].split(".")
    return "" if any(part.isdecimal() for part in parts) else "-".join(parts[1:-1]).lower().replace("_", "-")


def _tokens(name: str, tokens: tuple[Token, ...], count: int) -> tuple[Token, ...]:
    """Return tokens if they are as many, else so many of the name: what a pooling head asks with is no token."""
    if len(tokens) == count:
        return tokens
    names = [name if count == 1 else f"{name} {number + 1}" for number in range(count)]
    return tuple(Token(-1, each, each, special=True) for each in names)


Opened_co = TypeVar("Opened_co", covariant=True)


@runtime_checkable
class Handle(Protocol[Opened_co]):
    """A picture, video or sound that is opened where the model runs."""

    def open(self) -> Opened_co:
        """Return it."""
        ...


PAYLOADS = ("text", "text_pair", "target", "image", "video", "sound")
"""Fields of `RunInputs` that a kind of model takes or does not take (`ModelKind.inputs`)."""


@dataclass(frozen=True)
class RunInputs:
    """Inputs and limits of one run. A request for a run may have handles of its picture, video or sound."""

    text: str | None = None  # what an encoder reads, a decoder continues, or an encoder-decoder translates
    text_pair: str | None = None  # a second text, for encoders
    # in place of the text, with all special tokens: they are given to the model as they are
    token_ids: Sequence[int] | Tensor | None = None
    # what the model writes, instead of what it would: a continuation, a translation, the words of a sound
    target: str | None = None
    # a picture of any mode and size, for vision models, dual encoders and vision-language models; the latter put it
    # where the text says "<image>", or before the text
    image: Image.Image | Handle[Image.Image] | None = None
    # instead of a picture, for vision-language models that were trained on videos, in the same place
    video: Video | Handle[Video] | None = None
    sound: Sound | Handle[Sound] | None = None  # for speech models (`viz_core.sounds.open_sound.open_sound`)
    # most tokens it writes; the default of its kind unless given. 0 lets a decoder only read
    max_new_tokens: int | None = None
    sampling: Sampling = GREEDY  # how it chooses tokens
    max_tokens: int | None = None  # the most tokens a host allows a text to have, with what a decoder writes
    max_seconds: float | None = None  # time limit for writing
    language: str | None = None  # spoken in the sound, of `card.languages`; detected by the model unless given
    task: str | None = None  # of `card.tasks`: "transcribe", or "translate" into English

    def __post_init__(self) -> None:
        if self.max_new_tokens is not None and self.max_new_tokens < 0:
            raise ValueError(f"max_new_tokens: expected 0 or more, got {self.max_new_tokens}")
        if self.token_ids is not None:
            if self.text is not None or self.text_pair is not None:
                raise ValueError("token_ids: expected no text beside them")
            try:
                ids = tuple(operator.index(number) for number in self.token_ids)
            except TypeError:
                raise ValueError("token_ids: expected a sequence of integers, the ids of one text") from None
            object.__setattr__(self, "token_ids", ids)

    @property
    def payloads(self) -> frozenset[str]:
        """Names of the texts, pictures and sounds that are given; token ids are a text."""
        given = frozenset(name for name in PAYLOADS if getattr(self, name) is not None)
        return given if self.token_ids is None else given | {"text"}

    @property
    def read(self) -> str | Sequence[int]:
        """The text or the token ids that the model reads."""
        return (self.text or "") if self.token_ids is None else tuple(self.token_ids)

    @property
    def budget(self) -> int:
        """Most tokens to write, once `max_new_tokens` is set."""
        return self.max_new_tokens or 0
