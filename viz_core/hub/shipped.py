"""The project's own models behind the face of the lab's: nothing is fetched, and transformers is not needed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from viz_core.hub.card import HubCard
from viz_core.hub.engine import Engine
from viz_core.hub.errors import HubError
from viz_core.hub.families import Family
from viz_core.hub.generation import Writing
from viz_core.hub.model import DEFAULT_NEW_TOKENS, HubModel
from viz_core.hub.pictures import PictureInput
from viz_core.hub.positions import Positions
from viz_core.hub.run import HubRun, Label
from viz_core.hub.token_text import SPACE, Token, visible
from viz_core.pretrained import (
    MAX_SOURCE_TOKENS,
    ImageClassifier,
    ModelCard,
    TextError,
    Translator,
    available,
    load,
)
from viz_core.pretrained.decoding import greedy_search
from viz_core.pretrained.tokenization import UNK, WORD_START, clean, token_id
from viz_core.runtime.device import describe_device
from viz_core.trace import Trace, no_recording, record


def shipped_names() -> tuple[str, ...]:
    """Those in the project's own format that attend in many heads, a translator first."""
    cards = [card for card in available() if card.config.get("model", {}).get("architecture") in ("transformer", "vit")]
    return tuple(card.name for card in sorted(cards, key=lambda card: card.task != "translation"))


def load_shipped(name: str, device: torch.device) -> ShippedModel:
    """One of `shipped_names`, as the lab takes it.

    Raises:
        HubError: if its files are damaged.
    """
    try:
        model = load(name, device)
    except ValueError as error:
        raise HubError("{name} cannot be loaded: {detail}", name=name, detail=error) from None
    reads = isinstance(model, Translator)
    family = Family("encoder-decoder", None, "words") if reads else Family("vision", None, "labels")
    engine = Engine(name, family, model.model, device, _positions(model), None, None, False, contextlib.nullcontext())
    return ShippedModel(_describe(model.card, model, engine), engine, model)


@dataclass(frozen=True, eq=False)
class ShippedModel(HubModel):
    """A translator or a classifier of pictures that ships, run as the lab runs its models.

    Attributes:
        shipped: the model behind it.
    """

    shipped: Translator | ImageClassifier

    def _pass(
        self,
        text: str,
        pair: str | None,  # noqa: ARG002  # only encoders take one
        image: Image.Image | None,
        writing: Writing,  # its texts are short: they take no time that need be limited
    ) -> HubRun:
        if isinstance(self.shipped, ImageClassifier):
            assert image is not None  # as was checked
            return _classify(self.shipped, image)
        if writing.sampling.temperature > 0:
            raise HubError(
                "{name} takes the likeliest word at each step: set the temperature to 0.", name=self.card.name
            )
        return _translate(self.shipped, text, writing)

    def run_each(
        self, texts: Sequence[str], *, max_new_tokens: int | None = None, max_tokens: int | None = None
    ) -> Iterator[HubRun | HubError]:
        """The run of each text, or what is wrong with it; a translator writes for all of them as one batch."""
        if not isinstance(self.shipped, Translator):
            yield from super().run_each(texts, max_new_tokens=max_new_tokens, max_tokens=max_tokens)
            return
        model, encoded = self.shipped, [_encoded(self.shipped, text, max_tokens) for text in texts]
        sources = [ids for ids in encoded if not isinstance(ids, HubError)]
        budget = DEFAULT_NEW_TOKENS["encoder-decoder"] if max_new_tokens is None else max_new_tokens
        written = iter(_searched(model, sources, budget) if sources else ())
        for text, ids in zip(texts, encoded, strict=True):
            if isinstance(ids, HubError):
                yield ids
            else:
                yield replace(_recorded(model, ids, next(written)), made=self.made_of(text))

    @torch.inference_mode()
    def again(self, run: HubRun) -> Float[Tensor, "..."]:
        """Logits (log-probabilities of a classifier) of the run's inputs, with whatever edits are in force."""
        with no_recording():
            logits = self.shipped.model(*run.inputs.values())[0].float().cpu()
        return logits if self.card.head == "words" else logits.log_softmax(dim=-1)

    @torch.inference_mode()
    def recorded_again(self, run: HubRun) -> Trace:
        """The trace of the run's pass, done again with its values kept."""
        with record(values=True) as trace:
            self.shipped.model(*run.inputs.values())
        return trace

    def read(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """Tokens by their numbers.

        Raises:
            HubError: if the model reads no text.
        """
        if isinstance(self.shipped, ImageClassifier):
            raise HubError("{name} takes a picture, not a text.", name=self.card.name)
        return _tokens(self.shipped, ids)

    @property
    def class_names(self) -> Mapping[int, str]:
        """Labels by number, of a classifier; of a translator none."""
        return dict(enumerate(self.shipped.labels)) if isinstance(self.shipped, ImageClassifier) else {}


def _translate(model: Translator, text: str, writing: Writing) -> HubRun:
    """A translation by greedy search, or the one given, and one recorded pass over it."""
    source_ids = _encode(model, text, writing.max_tokens)
    if writing.target is None:
        return _recorded(model, source_ids, _searched(model, [source_ids], writing.max_new_tokens)[0])
    return _recorded(model, source_ids, [*model.tokenizer.encode(clean(writing.target)).ids, model.special.eos])


def _encode(model: Translator, text: str, most: int | None) -> list[int]:
    try:
        source_ids = model.encode(text)
    except TextError as error:
        raise HubError(error.sentence, **error.values) from None
    if most is not None and len(source_ids) > most:
        raise HubError(
            "This text has {count:,} tokens; at most {most:,} are allowed here. Shorten it.",
            count=len(source_ids),
            most=most,
        )
    return source_ids


def _encoded(model: Translator, text: str, most: int | None) -> list[int] | HubError:
    try:
        return _encode(model, text, most)
    except HubError as error:
        return error


def _searched(model: Translator, sources: Sequence[list[int]], budget: int) -> list[list[int]]:
    """The greedy translation of each; all are decoded as one batch, the shorter ones padded."""
    lengths = [len(ids) for ids in sources]
    X = torch.tensor([[*ids, *[model.special.pad] * (max(lengths) - len(ids))] for ids in sources], device=model.device)
    valid_lens = torch.tensor(lengths, device=model.device)
    return greedy_search(model.model, X, valid_lens, model.special, max(1, budget))


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


def _classify(model: ImageClassifier, image: Image.Image) -> HubRun:
    found = model.classify(image)
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


def _describe(card: ModelCard, model: Translator | ImageClassifier, engine: Engine) -> HubCard:
    sizes = card.config["model"]
    reads = isinstance(model, Translator)
    kind: Literal["encoder-decoder", "vision"] = "encoder-decoder" if reads else "vision"
    stacks = ("encoder", "decoder") if reads else ("encoder",)
    return HubCard(
        name=card.name,
        source="shipped",
        revision=card.revision,
        kind=kind,
        head=engine.family.head,
        architecture=type(model.model).__name__,
        model_type=sizes["architecture"],
        num_layers=dict.fromkeys(stacks, sizes["num_blks"]),
        num_heads=sizes["num_heads"],
        num_key_heads=sizes["num_heads"],
        width=sizes["num_hiddens"],
        num_parameters=sum(p.numel() for p in model.model.parameters()),
        positions=tuple(each.scheme for each in engine.positions),
        window=None,
        tokenizer="BPE" if isinstance(model, Translator) else "",
        vocabulary_size=model.tokenizer.get_vocab_size() if isinstance(model, Translator) else 0,
        picture_size=None if isinstance(model, Translator) else model.model.patch_embedding.img_size,
        patch_size=None if isinstance(model, Translator) else model.patch_size,
        max_tokens=MAX_SOURCE_TOKENS - 1 if reads else None,
        licence=card.licence,
        device=describe_device(engine.device),
        precision="float32",
        memory=4 * sum(p.numel() for p in model.model.parameters()),
        recording="queries and keys",
        picture_channels=1 if not isinstance(model, Translator) and model.filters.shape[1] == 1 else 3,
    )
