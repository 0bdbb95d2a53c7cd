"""The model lab's models and what they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from asking.model_spec import Model, Progress
from asking.request import Picture, Request
from hosting.settings import settings
from viz_core.hub import HubError, HubModel, HubRun, HubVision, NextWord, Sampling, find_folder, load_hub, local_models
from viz_core.maps.residuals import future_weight, row_sum_error
from viz_core.pretrained.picture_model import picture_facts
from viz_core.view.hub import hub_groups
from viz_core.view.map_group import MapGroup

CLAIMED_ROWS = 256
"""So many rows of each map are held to the claims."""


def _of_picture_model(question: Callable[..., Any]) -> Callable[..., Any]:
    return lambda model, *arguments: question(HubVision(model), *arguments)


@dataclass(frozen=True)
class Wanted(Model):
    """Which model: a name with a revision ("" for the newest), or a folder; `here`: ask nobody for it."""

    name: str
    revision: str = ""
    folder: str = ""
    here: bool = field(default=False, compare=False)
    most_loaded = 2
    answers = {  # noqa: RUF012
        "card": lambda model: model.card,
        "schemes": lambda model: model.positions,
        "facts": _of_picture_model(picture_facts),
        "positions": _of_picture_model(HubVision.position_table),
    }

    @property
    def place(self) -> str:
        return f"{self.folder or self.name}@{self.revision}"

    def load(self, progress: Progress | None) -> HubModel:
        """The model, as far as the settings of this machine allow.

        Raises:
            HubError: if it cannot be had or run here.
            ValueError: if ATLAS_DEVICE names a device that is not here.
        """
        allowed = settings()
        if self.folder:
            folder = find_folder(self.folder, allowed.model_folders)
            return load_hub(folder, memory_budget=allowed.model_memory)
        # Whoever runs this at home may use their own access to private models; visitors of a host may not.
        token = False if allowed.chosen_only else None
        return load_hub(
            self.name,
            self.revision or None,
            folders=allowed.model_folders,
            memory_budget=allowed.model_memory,
            offline=self.here,
            token=token,
            progress=progress,
        )

    def as_picture_model(self, loaded: HubModel) -> HubVision:
        return HubVision(loaded)


@dataclass(frozen=True)
class Shelf(Model):
    """No model, but all that can be loaded without a network."""

    answers = {  # noqa: RUF012
        "names": lambda _: tuple(model.name for model in local_models(settings().model_folders))
    }

    def load(self, progress: Progress | None) -> None:
        """Nothing."""


def _held(_model: HubModel, run: HubRun) -> int:
    """Bytes of the recording."""
    return run.trace.nbytes


def _residuals(_model: HubModel, run: HubRun) -> dict[str, float]:
    """How far the maps are from what must be true of them, by the name of each claim."""
    decoder = [call for call in run.trace if (call.stack, call.kind) == ("decoder", "self")]
    return {
        "rows": row_sum_error(run.trace, CLAIMED_ROWS),
        "future": max((future_weight(call, CLAIMED_ROWS) for call in decoder), default=0.0),
    }


def _next_words(model: HubModel, run: HubRun, position: int, count: int, temperature: float) -> tuple[NextWord, ...]:
    return model.next_words(run, position, count, temperature)


@dataclass(frozen=True)
class LabInput(Request[HubRun]):
    """What a model of the lab is given: a text, with a second or a target where it takes one, or a picture."""

    model: Wanted
    text: str = ""
    pair: str = ""
    target: str = ""
    picture: Picture | None = None
    new_tokens: int = 0
    sampling: Sampling = Sampling()  # noqa: RUF009  # frozen
    looks = {"held": _held, "residuals": _residuals, "next-words": _next_words}  # noqa: RUF012

    @property
    def light(self) -> LabInput:
        return self if self.picture is None else replace(self, picture=self.picture.light)

    def run(self, loaded: HubModel) -> HubRun:
        """One recorded run.

        Raises:
            HubError: if this is no input for this model, or longer than the settings of this machine allow.
            PictureMissingError: if the picture is not here.
        """
        allowed = settings()
        longest = max(len(self.text), len(self.pair), len(self.target))
        if allowed.max_characters is not None and longest > allowed.max_characters:
            most = f"at most {allowed.max_characters:,} are allowed here"
            raise HubError(f"This text has {longest:,} characters; {most}. Shorten it.")
        return loaded.run(
            self.text if self.picture is None else None,
            text_pair=self.pair or None,
            target=self.target or None,
            image=None if self.picture is None else self.picture.open(),
            max_new_tokens=self.new_tokens,
            sampling=self.sampling,
            max_tokens=allowed.max_tokens,
            max_seconds=allowed.max_seconds,
        )

    def groups(self, run: HubRun, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return hub_groups(run, labels)

    def without_bulk(self, run: HubRun) -> HubRun:
        """The logits of every token stay: their number alone is told."""
        return replace(run, output=run.output.to("meta"))
