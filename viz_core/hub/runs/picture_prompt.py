"""A text with a picture or a video in it, as a vision-language model reads it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from viz_core.hub.runs.layouts import MARK, EncodedPicture, Layout, LayoutContext
from viz_core.hub.runs.pictures import PatchGrid, PictureInput
from viz_core.hub.runs.run import Frame
from viz_core.hub.runs.token_text import Token
from viz_core.hub.runs.tokenizers import TextInput
from viz_core.hub.store import HubError
from viz_core.hub.store.files import LocalModel, read_json
from viz_core.images.open_image import Video, as_rgb


@dataclass(frozen=True, eq=False)
class Prompt:
    """Inputs of a model for a text with a picture."""

    inputs: dict[str, Tensor]  # input_ids with an attention_mask, and what the picture became
    whole: list[int] | None  # the ids of the prompt and of what is to follow it, where that is given
    text: str  # the prompt, `MARK` in the picture's place
    grids: tuple[PatchGrid, ...]  # where the picture's patches are among the tokens, and on the picture
    row_ends: tuple[int, ...]  # tokens that stand for the end of a row of patches
    frame: Frame | None  # all of the picture, as the vision tower sees it, where its maps are kept


@dataclass(frozen=True, eq=False)
class PicturePrompt:
    """Puts a picture into a text, as the family of a model does. Safe to share between threads."""

    layout: Layout  # of the family
    context: LayoutContext  # what it knows of the model
    text: TextInput  # its tokenizer
    patch_id: int  # the token that stands for a patch
    video_id: int  # the same within a video

    @classmethod
    def of(
        cls, layout: Layout, model: Any, processor: Any, tokenizer: Any, text: TextInput, place: LocalModel
    ) -> "PicturePrompt":
        """For a loaded model."""
        patch_id = int(model.config.image_token_id)
        ids = patch_id, int(getattr(model.config, "video_token_id", None) or patch_id)
        tokens = [str(tokenizer.convert_ids_to_tokens(i)) if i < len(tokenizer) else "" for i in ids]
        for number, token in zip(ids, tokens, strict=True):
            if tokenizer(token, add_special_tokens=False)["input_ids"] != [number]:
                raise HubError(
                    "The tokenizer of {name} has no token for a patch of a picture ({number}).",
                    name=place.name,
                    number=number,
                )
        starts = {"class_embedding", "cls_token"}
        num_special = sum(path.rsplit(".", 1)[-1] in starts for path, _ in model.named_parameters())
        bos, options = tokenizer.bos_token or "", load_video_options(place)
        context = LayoutContext(model.config, processor, tokens[0], tokens[1], num_special, bos, options)
        return cls(layout, context, text, *ids)

    def prepare(self, text: str, image: Image.Image | Video, target: str | None = None) -> Prompt:
        """A text with the picture or video where it says `MARK`, or before it."""
        if not text.replace(MARK, "").strip():
            raise HubError("There is nothing to read yet: type a text.")
        before, found, after = text.partition(MARK)
        if MARK in after:
            raise HubError("The text says {mark} more than once, and there is one picture.", mark=MARK)
        before, after = (before, after) if found else ("", text)
        encoded, is_video = self._encode(image), isinstance(image, Video)
        patch_id = (self.patch_id, self.video_id)[is_video]
        token = (self.context.token, self.context.video_token)[is_video]
        if encoded.prompt.startswith(" "):  # one space, of the prompt or of the text before it
            before = before.removesuffix(" ")
        prompt = before + encoded.prompt + after + self.layout.closing
        special = self.layout.add_special_tokens
        ids = self.text.encode(prompt, add_special_tokens=special)["input_ids"]
        whole = None
        if target is not None:
            whole = [int(i) for i in self.text.encode(prompt + target, add_special_tokens=special)["input_ids"][0]]
        patches = np.flatnonzero(ids[0].numpy() == patch_id)
        count = sum(grid.places.size for grid in encoded.grids)
        if len(patches) < count or len(patches) != encoded.prompt.count(token):
            raise HubError(
                "The text names {token}, which stands for a patch of the picture: leave it out.", token=token
            )
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), **encoded.inputs}
        if self.layout.types is not None:
            name, of_text, *of_patches, _ = self.layout.types
            inputs[name] = torch.where(ids == patch_id, of_patches[is_video], of_text)
        grids = tuple(replace(grid, places=patches[grid.places]) for grid in encoded.grids)
        row_ends = () if encoded.row_ends is None else tuple(patches[encoded.row_ends].tolist())
        given = f"{before}{MARK}{after}{self.layout.closing}"
        return Prompt(inputs, whole, given, grids, row_ends, self._frame(encoded))

    def _encode(self, image: Image.Image | Video) -> EncodedPicture:
        try:
            if not isinstance(image, Video):
                return self.layout.encode(self.context, as_rgb(image))
            if self.layout.encode_video is None:
                raise HubError("This model was not trained on videos. Bring a picture.")
            return self.layout.encode_video(self.context, image)
        except HubError:
            raise
        except (ValueError, OSError, TypeError, ArithmeticError) as error:
            raise HubError("This picture cannot be prepared for the model: {detail}", detail=str(error)) from None

    def _frame(self, encoded: EncodedPicture) -> Frame | None:
        if encoded.frames is None:
            return None
        size = self.context.config.vision_config.patch_size
        height, width = size if isinstance(size, list | tuple) else (size, size)
        seen = PictureInput(self.context.processor, (height, width), registers=False)
        whole = encoded.frames[self.layout.whole :][:1]
        grid = seen.grid(whole)
        tokens = seen.tokens(grid[0] * grid[1] + self.context.num_special, grid)
        return Frame(seen.picture(whole), grid, tokens)


def with_patches(
    tokens: tuple[Token, ...], grids: tuple[PatchGrid, ...], row_ends: tuple[int, ...] = ()
) -> tuple[Token, ...]:
    """Tokens of a run, those that are patches named by row and column from 1: "r3c5", "r3c5 (2)" in a second grid, and
    the ends of their rows "↵"."""
    named = list(tokens)
    for place in row_ends:
        named[place] = replace(tokens[place], text="", label="↵", starts_word=False, special=True)
    for number, grid in enumerate(grids, start=1):
        for (row, column), place in np.ndenumerate(grid.places):
            label = f"r{row + 1}c{column + 1}" + (f" ({number})" if number > 1 else "")
            named[place] = replace(tokens[place], text="", label=label, starts_word=False, special=True)
    return tuple(named)


def load_video_options(place: LocalModel) -> dict[str, Any]:
    """What a model's folder says of videos; {} where nothing but what it says of pictures."""
    for file, key in (("video_preprocessor_config.json", None), ("processor_config.json", "video_processor")):
        path = place.path / file
        content = read_json(path, place.name) if path.is_file() else {}
        if found := content if key is None else content.get(key):
            return dict(found)
    return {}
