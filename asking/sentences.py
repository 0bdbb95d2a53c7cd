"""Sentences for the shipped translators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch

from asking.model_spec import Model
from asking.request import Request
from viz_core.lessons.bahdanau import decoder_steps
from viz_core.lessons.transformer import residuals as claims
from viz_core.models import anatomy
from viz_core.pretrained import TextError, Translation, Translator
from viz_core.view.map_group import MapGroup
from viz_core.view.translation import translation_groups


def encoder_steps(
    translator: Translator, translation: Translation
) -> tuple[tuple[anatomy.Step, ...], dict[str, float]]:
    """Every step of the encoder with this sentence's numbers, and how far they are from what the encoder does."""
    encoder = translator.model.encoder
    source = torch.tensor([translation.source_ids], device=translator.device)
    residuals = {"walk": claims.walk_error(encoder, source), "twin": claims.position_wise_error(encoder)}
    return anatomy.encoder_steps(encoder, source), residuals


@dataclass(frozen=True)
class Sentence(Request[Translation]):
    """What is translated, and the width of the beam."""

    model: Model
    text: str
    beam: int = 1
    in_batches = True
    looks = {  # noqa: RUF012
        "residuals": claims.translation_residuals,
        "encoder-steps": encoder_steps,
        "steps": decoder_steps.decoder_steps,
        "step-residuals": decoder_steps.step_residuals,
        "bottleneck": decoder_steps.bottleneck_error,
    }

    def run(self, loaded: Translator) -> Translation:
        return loaded.translate(self.text, beam=self.beam)

    @classmethod
    def run_all(cls, loaded: Translator, requests: Sequence[Self]) -> list[Translation | Exception]:
        """Those by greedy search are decoded as one batch."""
        found: dict[Sentence, Translation | Exception] = {}
        for one in requests:
            try:
                loaded.encode(one.text)
            except TextError as error:
                found[one] = error
        for beam in {one.beam for one in requests}:
            those = [one for one in requests if one.beam == beam and one not in found]
            made = loaded.translate_all([one.text for one in those], beam=beam)
            found.update(zip(those, made, strict=True))
        return [found[one] for one in requests]

    def groups(self, run: Translation, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return translation_groups(run, labels)
