"""Description of a loaded model."""

from dataclasses import dataclass
from typing import Any, Literal

from viz_core.hub.custom_attention import coverage
from viz_core.hub.kinds import Head, ModelKind, kind_named
from viz_core.hub.store.files import SHIPPED_FOLDER, LocalModel, ModelFiles
from viz_core.runtime.device import describe_device
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
        window: keys a query of a sliding-window layer sees; None where every layer sees all.
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

    @property
    def kind_class(self) -> type[ModelKind]:
        """Its kind, as registered: what it takes and offers."""
        return kind_named(self.kind)


def describe(place: LocalModel, files: ModelFiles, engine: ModelKind, sites: tuple[str, ...]) -> HubCard:
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
        num_layers=_count_layers(config, sites),
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
        **engine.card_fields(),
    )


def _count_layers(config: Any, sites: tuple[str, ...]) -> dict[str, int]:
    layers: dict[str, set[str]] = {}
    for site in sites:
        stack, *place = site.split(".")[:-1]
        layers.setdefault(stack, set()).add(".".join(part for part in place if part.isdecimal()))
    counts = {stack: len(numbers) for stack, numbers in layers.items()}
    if len(counts) == 1:  # layers may share their weights
        counts = {stack: max(count, getattr(config, "num_hidden_layers", count)) for stack, count in counts.items()}
    return counts
