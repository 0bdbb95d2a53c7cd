"""One small way to ask a shipped model, wherever it runs: in this process, or in a pool of machines.

Questions are pure and say all there is to say (model, text, beam), so that any machine can answer any of them, again
if one has died, and one that has not seen the sentence yet works it out anew. Answers never hold a trace: queries and
keys stay beside the model, and so does the work on them: pictures, tiles and measures.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from jaxtyping import Float
from torch import Tensor

from hosting.keeping import MISSING, Kept
from viz_core import claims, decoder_steps
from viz_core.figures.map_group import LayerPicture, MapGroup
from viz_core.figures.translation import translation_groups
from viz_core.figures.view_answers import Part, answer
from viz_core.pretrained import TextError, Translation, Translator
from viz_core.trace import Trace


@dataclass(frozen=True)
class Sentence:
    """What is translated: the model's name, the text and the width of the beam."""

    model: str
    text: str
    beam: int = 1


LOOKS: dict[str, Callable[[Translator, Translation], Any]] = {
    "residuals": claims.translation_residuals,
    "steps": decoder_steps.decoder_steps,
    "step-residuals": decoder_steps.step_residuals,
    "bottleneck": decoder_steps.bottleneck_error,
}
"""What can be asked about a translation beside the text and its maps; each answer is small."""


class ModelRunner(Protocol):
    """Asks shipped models."""

    def translate(self, sentence: Sentence) -> Translation:
        """The translation; its trace may lie elsewhere, and then gets weights from there when someone looks.

        Raises:
            TextError: if the text cannot be translated.
            CheckpointError: if there is no such model.
        """
        ...

    def look(self, sentence: Sentence, question: str) -> Any:
        """The answer to one of LOOKS about a translation."""
        ...

    def groups(self, sentence: Sentence, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        """The maps of a translation as an attention view shows them."""
        ...


class Here:
    """Models in this process. Also what works beside the models on the machines of a pool."""

    def __init__(self, load: Callable[[str], Translator], kept: Kept) -> None:
        self._load, self._kept = load, kept

    def translate(self, sentence: Sentence) -> Translation:
        return self.translate_all([sentence])[0]

    def translate_all(self, sentences: Sequence[Sentence]) -> list[Translation]:
        """Several at once: those for one model and by greedy search are decoded as one batch.

        Raises:
            TextError: if one of the texts cannot be translated.
        """
        found = {one: self._kept.get(("translated", one)) for one in sentences}
        for model, beam in {(one.model, one.beam) for one in sentences if found[one] is MISSING}:
            those = [one for one in found if (one.model, one.beam) == (model, beam) and found[one] is MISSING]
            translations = self._load(model).translate_all([one.text for one in those], beam=beam)
            for one, made in zip(those, translations, strict=True):
                self._kept.put(("translated", one), made)
                found[one] = made
        return [found[one] for one in sentences]

    def look(self, sentence: Sentence, question: str) -> Any:
        return LOOKS[question](self._load(sentence.model), self.translate(sentence))

    def groups(self, sentence: Sentence, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return translation_groups(self.translate(sentence), labels)

    # What a pool's machines are asked besides

    def outline(self, sentence: Sentence) -> Outline:
        """The translation without its trace."""
        return outline(self.translate(sentence))

    def check(self, sentence: Sentence) -> TextError | None:
        """What is wrong with the text, so that one bad text spoils no batch."""
        try:
            self._load(sentence.model).encode(sentence.text)
        except TextError as error:
            return error
        return None

    def picture(self, sentence: Sentence, group: str, layer: int) -> LayerPicture:
        """One layer of a group of maps: thumbnails and fingerprints."""
        return self._groups(sentence)[group].picture(layer)

    def part(self, sentence: Sentence, name: str) -> Part:
        """A part of the view by its name: a map, a tile, a token's rows.

        Raises:
            PartError: if there is no such part.
        """
        return answer(lambda _input, group: self._groups(sentence).get(group), name)

    def rows(
        self, sentence: Sentence, site: str, heads: slice, queries: slice
    ) -> Float[Tensor, "batch some_heads rows keys"]:
        """Exact weights of some heads and queries."""
        return self.translate(sentence).trace[site].source.rows(heads, queries).cpu()

    def _groups(self, sentence: Sentence) -> dict[str, MapGroup]:
        key = ("grouped", sentence)
        found = self._kept.get(key)
        if found is MISSING:
            found = {group.id: group for group in self.groups(sentence, defaultdict(str))}  # names are for people
            self._kept.put(key, found)
        groups: dict[str, MapGroup] = found
        return groups


@dataclass(frozen=True)
class Outline:
    """A translation as it crosses to another machine: its trace by site and shape alone."""

    translation: Translation
    sites: tuple[tuple[str, tuple[int, int, int, int]], ...]


def outline(translation: Translation) -> Outline:
    """A translation without queries and keys."""
    shapes = tuple((call.site, call.source.shape) for call in translation.trace)
    return Outline(replace(translation, trace=Trace()), shapes)


Ask = Callable[..., Any]
"""(name of a method of `Here`, sentence, arguments) -> its answer, from wherever it is worked out."""


@dataclass(frozen=True)
class DistantRows:
    """The weights of a call whose queries and keys lie elsewhere: fetched where someone looks."""

    shape: tuple[int, int, int, int]
    fetch: Callable[[slice, slice], Tensor]

    def tensors(self) -> list[Tensor]:
        return []

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        return self.fetch(heads, queries)


@dataclass(frozen=True)
class DistantMaps:
    """The maps of a sentence that lie elsewhere."""

    ask: Ask
    sentence: Sentence

    def picture(self, group: str, layer: int) -> LayerPicture:
        picture: LayerPicture = self.ask("picture", self.sentence, group, layer)
        return picture

    def part(self, name: str) -> Part:
        part: Part = self.ask("part", self.sentence, name)
        return part


class There:
    """Models elsewhere, asked through `ask`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def translate(self, sentence: Sentence) -> Translation:
        answered: Outline | TextError = self._ask("outline", sentence)
        if isinstance(answered, Exception):
            raise answered
        trace = Trace()
        for site, shape in answered.sites:
            trace.add(DistantRows(shape, partial(self._ask, "rows", sentence, site)), site)
        return replace(answered.translation, trace=trace)

    def look(self, sentence: Sentence, question: str) -> Any:
        return self._ask("look", sentence, question)

    def groups(self, sentence: Sentence, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        maps = DistantMaps(self._ask, sentence)
        return tuple(replace(group, elsewhere=maps) for group in translation_groups(self.translate(sentence), labels))


class Loaded:
    """Models by name, each loaded once, by whoever asks first."""

    def __init__(self, load: Callable[[str], Translator]) -> None:
        self._load = load
        self._models: dict[str, Translator] = {}  # no more than ship: `load` refuses any other name
        self._lock = threading.Lock()

    def __call__(self, name: str) -> Translator:
        with self._lock:
            if name not in self._models:
                self._models[name] = self._load(name)
            return self._models[name]
