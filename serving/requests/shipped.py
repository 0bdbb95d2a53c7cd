"""Requests to shipped translators and vision models, and walks through them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from jaxtyping import Float

from serving.requests.hub import OwnModelSpec
from serving.requests.models import ModelSpec, ShippedClassifier, ShippedTranslator
from serving.requests.request import Picture, RunRequest, with_heads_off
from viz_core.hub import HubModel, Sampling
from viz_core.lab.walk import walk_picture, walk_writing
from viz_core.lab.walk_records import Edits, Walk
from viz_core.pretrained import Classification, ImageClassifier, TextError, Translation, Translator
from viz_core.pretrained.bleu import bleu_statistics
from viz_core.pretrained.classifier import PictureModel
from viz_core.pretrained.samples import held_out
from viz_core.trace import HeadsOff, intervene, switched_off
from viz_core.view.map_group import MapGroup
from viz_core.view.save import RunSource
from viz_core.view.shipped import picture_groups, translation_groups


@dataclass(frozen=True)
class ClassificationRequest(RunRequest[PictureModel, Classification]):
    """A picture to classify, and the heads that are switched off."""

    model: ModelSpec[PictureModel]
    picture: Picture
    off: HeadsOff = ()

    @property
    def without_payload(self) -> "ClassificationRequest":
        return replace(self, picture=self.picture.without_payload)

    def run(self, model: PictureModel) -> Classification:
        prepared = model.prepare(self.picture.open())
        with intervene(switched_off(self.off)):
            return model.classify_prepared(prepared)

    def groups(self, run: Classification, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return picture_groups(run, labels)

    def run_source(self) -> RunSource:
        """How a notebook looks at it."""
        picture = self.picture.run_source()
        call = with_heads_off(self.off, "run = model.classify_prepared(model.prepare(image))")
        return self.model.run_source().then(f"{picture.code}\n{call}", picture.needs)


@dataclass(frozen=True)
class TranslationRequest(RunRequest[Translator, Translation]):
    """A sentence to translate, the beam width, and the heads that are switched off, as pairs of site and number."""

    model: ModelSpec[Translator]
    text: str
    beam: int = 1
    off: HeadsOff = ()
    in_batches = True

    def run(self, model: Translator) -> Translation:
        with intervene(switched_off(self.off)):
            return model.translate(self.text, beam=self.beam)

    @classmethod
    def run_all(cls, model: Translator, requests: Sequence[Self]) -> list[Translation | Exception]:
        """Return a translation or an error for each request; requests with equal settings run as one batch."""
        found: dict[TranslationRequest, Translation | Exception] = {}
        sources: dict[TranslationRequest, list[int]] = {}
        for one in requests:
            try:
                sources[one] = model.encode(one.text)
            except TextError as error:
                found[one] = error
        for beam, off in {(one.beam, one.off) for one in sources}:
            batch = [one for one in sources if (one.beam, one.off) == (beam, off)]
            try:
                with intervene(switched_off(off)):
                    translations = model.translate_ids([sources[one] for one in batch], beam=beam)
                found.update(zip(batch, translations, strict=True))
            except ValueError as error:  # there is no such head
                found.update(dict.fromkeys(batch, error))
        return [found[one] for one in requests]

    def groups(self, run: Translation, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return translation_groups(run, labels)

    def run_source(self) -> RunSource:
        """How a notebook translates it."""
        beam = "" if self.beam == 1 else f", beam={self.beam}"
        return self.model.run_source().then(
            f"{with_heads_off(self.off, f'run = model.translate({self.text!r}{beam})')}\nprint(run.text)"
        )


def held_out_statistics(
    translator: Translator, off: HeadsOff, start: int, stop: int
) -> Float[np.ndarray, "sentences 10"]:
    """Return BLEU statistics of the translations of some held-out sentences with heads switched off."""
    some = held_out()[start:stop]
    with intervene(switched_off(off)):
        texts = translator.translate_texts([sample.english for sample in some])
    return bleu_statistics(texts, [sample.references for sample in some])


WRITER = OwnModelSpec("writer-en", offline=True)
TRANSLATOR = ShippedTranslator("transformer-en-fr")
CLASSIFIER = ShippedClassifier("vit-fashion-mnist")
_NEW_TOKENS = 4


def write(model: HubModel, text: str, temperature: float, top_k: int, edits: Edits) -> Walk:
    """Return the walk through a few words that continue a text; see `walk_writing`."""
    return walk_writing(model, text, _NEW_TOKENS, Sampling(temperature=temperature, top_k=top_k), edits)


def classify(model: ImageClassifier, picture: Picture, edits: Edits) -> Walk:
    """Return the walk through a picture; see `walk_picture`."""
    return walk_picture(model, picture.open(), edits)
