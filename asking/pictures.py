"""Pictures for the vision models: those that ship, and those of the lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from asking.model_spec import Model
from asking.request import Picture, Request
from viz_core.lessons.vision_transformer.looks import TokenLook, heads_by_depth, look_of_token, token_by_depth
from viz_core.lessons.vision_transformer.permutation import PermutationTest, permutation_test, random_order
from viz_core.maps.over_patches import token_attention
from viz_core.maps.residuals import row_sum_error
from viz_core.maps.rollout import HeadFusion
from viz_core.pretrained import Classification
from viz_core.pretrained.picture_model import PictureModel
from viz_core.view.map_group import MapGroup
from viz_core.view.picture import picture_groups


def _row_error(_model: PictureModel, run: Classification) -> float:
    return row_sum_error(run.trace)


def _relevance(model: PictureModel, run: Classification, label: str) -> Float[Tensor, "tokens tokens"]:
    return model.relevance(run.prepared, label)


def _permutation(model: PictureModel, run: Classification, seed: int) -> PermutationTest:
    order = random_order(run.grid[0] * run.grid[1], seed)
    return permutation_test(model.predict, run.prepared.pixels, model.patch_size, order)


def _token(
    _model: PictureModel, run: Classification, token: int, layer: int, fusion: HeadFusion, discard: float
) -> TokenLook:
    return look_of_token(_layers(run), token, layer, fusion, discard)


def _depth(_model: PictureModel, run: Classification, token: int) -> tuple[Tensor, Tensor]:
    return token_by_depth(_layers(run), token)


def _heads(model: PictureModel, run: Classification) -> dict[str, Float[Tensor, "layers heads"]]:
    return heads_by_depth(_layers(run), run.grid, model.patch_size, run.num_special)


def _token_attention(
    _model: PictureModel, run: Classification, token: int
) -> Float[Tensor, "layers heads rows columns"]:
    return token_attention(run.trace, token, run.grid, run.num_special)


def _layers(run: Classification) -> list[Float[Tensor, "heads tokens tokens"]]:
    return [call.weights()[0] for call in run.trace]


@dataclass(frozen=True)
class Viewing(Request[Classification]):
    """What a vision model is shown."""

    model: Model
    picture: Picture
    looks = {  # noqa: RUF012
        "row-error": _row_error,
        "relevance": _relevance,
        "permutation": _permutation,
        "token": _token,
        "depth": _depth,
        "heads": _heads,
        "token-attention": _token_attention,
    }

    @property
    def light(self) -> Viewing:
        return Viewing(self.model, self.picture.light)

    def run(self, loaded: Any) -> Classification:
        model = self.model.as_picture_model(loaded)
        return model.look(model.prepare(self.picture.open()))

    def look(self, question: str, loaded: Any, run: Classification, *arguments: Any) -> Any:
        return self.looks[question](self.model.as_picture_model(loaded), run, *arguments)

    def groups(self, run: Classification, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return picture_groups(run, labels)
