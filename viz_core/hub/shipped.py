"""The project's own models as hub models, without a download and without transformers."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from PIL.Image import Image
from torch import Tensor

from viz_core.hub.kinds import ModelKind
from viz_core.hub.kinds.base import ConfigFacts
from viz_core.hub.kinds.encoder_decoder import EncoderDecoderKind
from viz_core.hub.kinds.vision import Vision
from viz_core.hub.model import HubCard, HubModel
from viz_core.hub.runs.pictures import PictureInput
from viz_core.hub.runs.positions import Positions
from viz_core.hub.runs.run import HubRun, Label, RunInputs
from viz_core.hub.runs.token_text import SPACE, Token, visible
from viz_core.hub.store import HubError, attempt
from viz_core.hub.store.files import LocalModel
from viz_core.pretrained import MAX_SOURCE_TOKENS, ImageClassifier, ModelCard, TextError, Translator, available, load
from viz_core.pretrained.tokenization import UNK, WORD_START, clean, token_id
from viz_core.runtime.device import describe_device
from viz_core.trace import Trace, no_recording, record


def shipped_kinds() -> dict[str, str]:
    """The kind of each multi-head model in the project's own format by the model's name, a translator first."""
    cards = [card for card in available() if card.config.get("model", {}).get("architecture") in ("transformer", "vit")]
    translators = {card.name: EncoderDecoderKind.name for card in cards if card.task == "translation"}
    return translators | {card.name: Vision.name for card in cards if card.task != "translation"}


def shipped_names() -> tuple[str, ...]:
    """The names of `shipped_kinds`."""
    return tuple(shipped_kinds())


def load_shipped(name: str, device: torch.device) -> "ShippedHubModel":
    """Load one of `shipped_names` as a hub model."""
    try:
        model = load(name, device)
    except ValueError as error:
        raise HubError("{name} cannot be loaded: {detail}", name=name, detail=error) from None
    return as_hub_model(model, device)


def as_hub_model(model: Translator | ImageClassifier, device: torch.device) -> "ShippedHubModel":
    """Return a model in the project's own format as a hub model."""
    name = model.card.name
    common = (model.model, device, _positions(model), False, contextlib.nullcontext())
    engine: ShippedKind
    if isinstance(model, Translator):
        engine = ShippedTranslation(name, "words", *common, model)
    elif isinstance(model, ImageClassifier):
        engine = ShippedClassification(name, "labels", *common, model)
    else:
        raise HubError("{name} cannot be loaded: {detail}", name=name, detail=type(model).__name__)
    return ShippedHubModel(_describe(model.card, engine), engine)


@dataclass(frozen=True, eq=False)
class ShippedKind(ModelKind):
    """A kind whose models ship in the project's own format. It is not registered: none is recognised by a config."""

    shipped: Any

    def __init_subclass__(cls, like: type[ModelKind]) -> None:
        """Offer what a registered kind offers, under its name."""
        for attribute in ("name", "stack", "inputs", "input_label", "controls", "features", "new_tokens"):
            setattr(cls, attribute, getattr(like, attribute))

    @classmethod
    def recognise(cls, facts: ConfigFacts) -> None:  # noqa: ARG003  # no config of transformers
        return None

    @classmethod
    def load_inputs(cls, place: LocalModel, model: Any) -> dict[str, Any]:  # noqa: ARG003  # all of it ships
        return {}

    def output_again(self, run: HubRun) -> Float[Tensor, "..."]:
        with no_recording():
            return self.model(*run.inputs.values())[0].float().cpu()

    def recorded_again(self, run: HubRun) -> Trace:
        with record(values=True) as trace:
            self.model(*run.inputs.values())
        return trace


@dataclass(frozen=True, eq=False)
class ShippedTranslation(ShippedKind, like=EncoderDecoderKind):
    """A translator that ships, run as the lab runs its encoder-decoders."""

    shipped: Translator

    def run(self, inputs: RunInputs) -> HubRun:
        """A translation by greedy search, or the target, and one recorded pass over it. Short: no time limit."""
        if inputs.sampling.temperature > 0:
            raise HubError(
                "{name} takes the likeliest word at each step: set the temperature to 0.", name=self.model_name
            )
        model, source_ids = self.shipped, self.encode(inputs.text or "", inputs.max_tokens)
        if inputs.target is None:
            return _recorded(model, source_ids, model.search([source_ids], max(1, inputs.budget))[0])
        return _recorded(model, source_ids, [*model.tokenizer.encode(clean(inputs.target)).ids, model.special.eos])

    def encode(self, text: str, most: int | None) -> list[int]:
        """Token ids of a text, refused where it has more than `most`."""
        try:
            ids = self.shipped.encode(text)
        except TextError as error:
            raise HubError(error.sentence, **error.values) from None
        self.check_length(len(ids), None, most)
        return ids

    def read(self, ids: Sequence[int]) -> tuple[Token, ...]:
        return _tokens(self.shipped, ids)

    def card_fields(self) -> dict[str, Any]:
        return super().card_fields() | {
            "tokenizer": "BPE",
            "vocabulary_size": self.shipped.tokenizer.get_vocab_size(),
            "max_tokens": MAX_SOURCE_TOKENS - 1,
        }

    @property
    def class_names(self) -> Mapping[int, str]:
        return {}


@dataclass(frozen=True, eq=False)
class ShippedClassification(ShippedKind, like=Vision):
    """A classifier of pictures that ships, run as the lab runs its vision models."""

    shipped: ImageClassifier

    def run(self, inputs: RunInputs) -> HubRun:
        assert isinstance(inputs.image, Image)  # checked before
        model = self.shipped
        found = model.classify(inputs.image)
        num_tokens = next(iter(found.trace)).num_keys
        chances = torch.tensor([found.probabilities[label] for label in model.labels])
        return HubRun(
            PictureInput(None, model.patch_size, False).tokens(num_tokens, found.grid),
            found.trace,
            chances.log(),
            num_prompt_tokens=num_tokens,
            labels=tuple(Label(*each) for each in found.probabilities.items()),
            grid=found.grid,
            image=found.prepared.seen,
            inputs={"pixels": found.prepared.pixels.to(model.device)},
        )

    def output_again(self, run: HubRun) -> Float[Tensor, "..."]:
        """Log-probabilities of the classes."""
        return super().output_again(run).log_softmax(dim=-1)

    def card_fields(self) -> dict[str, Any]:
        return super().card_fields() | {
            "picture_size": self.model.patch_embedding.img_size,
            "patch_size": self.shipped.patch_size,
            "picture_channels": 1 if self.shipped.filters.shape[1] == 1 else 3,
        }

    @property
    def class_names(self) -> Mapping[int, str]:
        return dict(enumerate(self.shipped.labels))


@dataclass(frozen=True, eq=False)
class ShippedHubModel(HubModel):
    """A translator or a classifier of pictures that ships, behind the interface of the hub's models."""

    engine: ShippedKind

    @property
    def shipped(self) -> Any:
        """The model as `viz_core.pretrained.load` returns it."""
        return self.engine.shipped

    def run_each(
        self, texts: Sequence[str], *, max_new_tokens: int | None = None, max_tokens: int | None = None
    ) -> Iterator[HubRun | HubError]:
        """The run of each text, or what is wrong with it; a translator writes for all of them as one batch."""
        if not isinstance(self.engine, ShippedTranslation):
            yield from super().run_each(texts, max_new_tokens=max_new_tokens, max_tokens=max_tokens)
            return
        engine, model = self.engine, self.engine.shipped
        encoded: list[Any] = [attempt(engine.encode, text, max_tokens) for text in texts]
        sources = [ids for ids in encoded if not isinstance(ids, HubError)]
        budget = engine.new_tokens if max_new_tokens is None else max_new_tokens
        written = iter(model.search(sources, max(1, budget)) if sources else ())
        for text, ids in zip(texts, encoded, strict=True):
            if isinstance(ids, HubError):
                yield ids
            else:
                yield replace(_recorded(model, ids, next(written)), made=self.made_of(text))


@torch.inference_mode()
def _recorded(model: Translator, source_ids: list[int], target_ids: list[int]) -> HubRun:
    """One recorded pass over a finished translation."""
    inputs = model.teacher_forced(source_ids, target_ids)
    with record() as trace:
        logits = model.model(*inputs)
    unknown = token_id(model.tokenizer, UNK)
    return HubRun(
        _tokens(model, source_ids),
        trace,
        logits[0].float().cpu(),
        num_prompt_tokens=len(source_ids),
        decoder_tokens=_tokens(model, inputs[1][0].tolist()),
        target_tokens=_tokens(model, target_ids),
        text=model.tokenizer.decode(target_ids),
        complete=target_ids[-1] == model.special.eos,
        inputs=dict(zip(("source", "target", "valid_lens"), inputs, strict=True)),
        num_unknown=source_ids.count(unknown),
    )


def _tokens(model: Translator, ids: Sequence[int]) -> tuple[Token, ...]:
    """Tokens as the lab's reader would give them."""
    special = {model.special.pad, model.special.bos, model.special.eos}
    tokens = []
    for number in ids:
        name = model.tokenizer.id_to_token(number) or UNK
        text, starts = name.removeprefix(WORD_START), name.startswith(WORD_START)
        label = f"{SPACE}{visible(text)}" if starts else visible(text) or SPACE
        tokens.append(Token(number, text, label, starts, number in special))
    return tuple(tokens)


def _positions(model: Translator | ImageClassifier) -> tuple[Positions, ...]:
    if isinstance(model, Translator):
        table = model.model.encoder.pos_encoding.P[0]
        return (Positions("sinusoidal", "encoder.pos_encoding", "encoder", table.float().cpu()),)
    table = model.model.pos_embedding[0]
    return (Positions("learned", "pos_embedding", "encoder", table.float().cpu(), num_special=1),)


def _describe(card: ModelCard, engine: ShippedKind) -> HubCard:
    sizes, num_parameters = card.config["model"], sum(p.numel() for p in engine.model.parameters())
    stacks = ("encoder", "decoder") if engine.stack is None else (engine.stack,)
    return HubCard(
        name=card.name,
        source="shipped",
        revision=card.revision,
        kind=engine.name,
        head=engine.head,
        architecture=type(engine.model).__name__,
        model_type=sizes["architecture"],
        num_layers=dict.fromkeys(stacks, sizes["num_blks"]),
        num_heads=sizes["num_heads"],
        num_key_heads=sizes["num_heads"],
        width=sizes["num_hiddens"],
        num_parameters=num_parameters,
        positions=tuple(each.scheme for each in engine.positions),
        window=None,
        licence=card.licence,
        device=describe_device(engine.device),
        precision="float32",
        memory=4 * num_parameters,
        recording="queries and keys",
        **engine.card_fields(),
    )
