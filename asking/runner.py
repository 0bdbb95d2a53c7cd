"""One small way to ask a model, wherever it runs: in this process, or in a pool of machines.

Requests are pure and say all there is to say (which model, what it is given), so that any machine can answer any of
them, again if one has died, and one that has not seen the input yet works it out anew. Answers never hold a trace:
queries and keys stay beside the model, and so does the work on them: pictures, tiles, rollouts and measures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from jaxtyping import Float
from torch import Tensor

from asking.model_spec import Model, Progress
from asking.request import PictureMissingError, Request
from hosting.cache import MISSING, Kept
from viz_core.trace import Trace
from viz_core.view.map_group import MapGroup
from viz_core.view.map_source import LayerPicture, Part, PartError
from viz_core.view.requests import WeightsRequest

Run = TypeVar("Run")


class ModelRunner(Protocol):
    """Asks models."""

    def load(self, model: Model, progress: Progress | None = None) -> None:
        """Have a model ready, which may take long; whatever else is asked loads it as well.

        Raises:
            ValueError: if there is no such model, or it cannot be had or run; the message is for a person.
        """
        ...

    def about(self, model: Model, question: str, *arguments: Any) -> Any:
        """The answer to one of `Model.answers`: what there is to know of a model beside its runs."""
        ...

    def run(self, request: Request[Run]) -> Run:
        """What the model makes of it; the trace may lie elsewhere, and then gets weights from there when someone looks.

        Raises:
            ValueError: if there is no such model, or it cannot take this; the message is for a person.
        """
        ...

    def look(self, request: Request[Any], question: str, *arguments: Any) -> Any:
        """The answer to one of `Request.looks` about a run."""
        ...

    def groups(self, request: Request[Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        """The maps of a run as an attention view shows them."""
        ...


class Here:
    """Models in this process. Also what works beside the models on the machines of a pool.

    Args:
        load: the loaded model of a `Model`; gets who wants to know how far it is, where somebody does.
        kept: where runs are kept.
    """

    def __init__(self, load: Callable[..., Any], kept: Kept) -> None:
        self._load, self._kept = load, kept

    def load(self, model: Model, progress: Progress | None = None) -> None:
        self._load(model, progress)

    def about(self, model: Model, question: str, *arguments: Any) -> Any:
        return model.answers[question](self._load(model), *arguments)

    def run(self, request: Request[Run]) -> Run:
        found = self.run_all([request])[0]
        if isinstance(found, Exception):
            raise found
        return found

    def run_all(self, requests: list[Request[Run]]) -> list[Run | Exception]:
        """Several at once, those for one model together; where one cannot be had, what is wrong with it."""
        found = {one.light: self._kept.get(("run", one.light)) for one in requests}
        missing = {one.light: one for one in requests if found[one.light] is MISSING}
        for kind, model in {(type(one), one.model) for one in missing.values()}:
            those = [one for one in missing.values() if (type(one), one.model) == (kind, model)]
            try:
                results = kind.run_all(self._load(model), those)
            except ValueError as error:  # no such model
                results = [error] * len(those)
            for one, made in zip(those, results, strict=True):
                if not isinstance(made, Exception):
                    self._kept.put(("run", one.light), made)
                found[one.light] = made
        return [found[one.light] for one in requests]

    def look(self, request: Request[Any], question: str, *arguments: Any) -> Any:
        return request.look(question, self._load(request.model), self.run(request), *arguments)

    def groups(self, request: Request[Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return request.groups(self.run(request), labels)

    # What a pool's machines are asked besides

    def outlines(self, requests: list[Request[Any]]) -> list[Outline | Exception]:
        """Runs without their traces."""
        made = zip(requests, self.run_all(requests), strict=True)
        return [run if isinstance(run, Exception) else outline(one, run) for one, run in made]

    def picture(self, request: Request[Any], group: str, layer: int) -> LayerPicture:
        """One layer of a group of maps: thumbnails and fingerprints."""
        return self._groups(request)[group].picture(layer)

    def parts(self, request: Request[Any], group: str, wanted: Sequence[WeightsRequest]) -> list[Part | PartError]:
        """Parts of a group's maps: whole ones, tiles, a token's rows."""
        return self._groups(request)[group].maps.parts(wanted)

    def rows(
        self, request: Request[Any], site: str, heads: slice, queries: slice
    ) -> Float[Tensor, "batch some_heads rows keys"]:
        """Exact weights of some heads and queries."""
        return self.run(request).trace[site].source.rows(heads, queries).cpu()

    def _groups(self, request: Request[Any]) -> dict[str, MapGroup]:
        key = ("grouped", request.light)
        found = self._kept.get(key)
        if found is MISSING:
            found = {group.id: group for group in self.groups(request, defaultdict(str))}  # names are for people
            self._kept.put(key, found)
        groups: dict[str, MapGroup] = found
        return groups


@dataclass(frozen=True)
class Outline:
    """A run as it crosses to another machine: its trace by site and shape alone."""

    run: Any
    sites: tuple[tuple[str, tuple[int, int, int, int]], ...]


def outline(request: Request[Any], run: Any) -> Outline:
    """A run without queries and keys, and without what else is large."""
    shapes = tuple((call.site, call.source.shape) for call in run.trace)
    return Outline(replace(request.without_bulk(run), trace=Trace()), shapes)


Ask = Callable[..., Any]
"""(name of a method of `Here`, model or request, arguments) -> its answer, from wherever it is worked out."""


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
    """The `MapSource` of a group whose queries and keys lie elsewhere."""

    ask: Ask
    request: Request[Any]
    group: str

    def picture(self, layer: int) -> LayerPicture:
        picture: LayerPicture = self.ask("picture", self.request, self.group, layer)
        return picture

    def parts(self, requests: Sequence[WeightsRequest]) -> list[Part | PartError]:
        parts: list[Part | PartError] = self.ask("parts", self.request, self.group, requests)
        return parts


class There:
    """Models elsewhere, asked through `ask`. A picture goes along only where it is not known yet."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def load(self, model: Model, progress: Progress | None = None) -> None:  # noqa: ARG002  # none comes from there
        self._ask("load", model)

    def about(self, model: Model, question: str, *arguments: Any) -> Any:
        return self._ask("about", model, question, *arguments)

    def run(self, request: Request[Run]) -> Run:
        answered: Outline = self._of("outline", request)
        trace = Trace()
        for site, shape in answered.sites:
            trace.add(DistantRows(shape, partial(self._of, "rows", request, site)), site)
        run: Run = replace(answered.run, trace=trace)
        return run

    def look(self, request: Request[Any], question: str, *arguments: Any) -> Any:
        return self._of("look", request, question, *arguments)

    def groups(self, request: Request[Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        groups = request.groups(self.run(request), labels)
        return tuple(replace(group, source=DistantMaps(self._of, request, group.id)) for group in groups)

    def _of(self, question: str, request: Request[Any], *arguments: Any) -> Any:
        try:
            return self._ask(question, request.light, *arguments)
        except PictureMissingError:
            return self._ask(question, request, *arguments)
