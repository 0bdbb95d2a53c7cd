"""Dual encoders, which compare a picture with a text: CLIP (Radford 2021), SigLIP (Zhai 2023)."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from PIL.Image import Image
from torch import Tensor

from viz_core.hub.kinds.base import ConfigFacts, Head, InputControl, TextKind, ids_of
from viz_core.hub.runs.pictures import PictureInput, load_image_processor
from viz_core.hub.runs.run import Frame, HubRun, Label, RunInputs
from viz_core.hub.runs.tokenizers import load_tokenizer
from viz_core.hub.store import HubError
from viz_core.hub.store.files import LocalModel
from viz_core.images.open_image import as_rgb


@dataclass(frozen=True, eq=False)
class DualEncoder(TextKind):
    """Reads a picture and a text, each with a tower of its own, and compares them."""

    name = "dual-encoder"
    order = 6
    stack = "encoder"
    inputs = frozenset({"text", "image"})
    input_label = "both"
    controls = (
        InputControl("picture", "picture", "image"),
        InputControl("caption", "line", "text", initial="start.dual-encoder"),
    )
    features = frozenset({"similarities"})
    picture_text_types = ("clip", "siglip")
    input_part = "processor"
    vision_refusal = "{name} takes a picture and a text together."

    processor: PictureInput

    @classmethod
    def recognise(cls, facts: ConfigFacts) -> tuple[str, Head] | None:
        known = facts.has_vision_config and facts.model_type in cls.picture_text_types
        return ("AutoModel", "") if known and not facts.architecture.endswith("ForImageClassification") else None

    @classmethod
    def load_inputs(cls, place: LocalModel, model: Any) -> dict[str, Any]:
        side = model.config.vision_config.patch_size
        text = load_tokenizer(place, model.text_model)[1]
        return {"tokenizer": text, "processor": PictureInput(load_image_processor(place), (side, side), False)}

    def card_fields(self) -> dict[str, Any]:
        sizes = {"picture_size": self.processor.size, "patch_size": self.processor.patch_size}
        return super().card_fields() | sizes

    def run(self, inputs: RunInputs) -> HubRun:
        assert isinstance(inputs.image, Image)  # checked before
        pixels = self.processor.encode(inputs.image)
        grid = self.processor.grid(pixels)
        text, length = self.encode(inputs.text or "", most=inputs.max_tokens), self.max_positions("encoder")
        if self.pools_patches and length is not None:  # reads the last position of a full text, as in training
            text = {"input_ids": self.tokenizer.pad(text["input_ids"], length)}
        ids = ids_of(text)
        encoded = {**text, "pixel_values": self.on_device(pixels)}
        result, trace = self.recorded(encoded, max(len(ids), grid[0] * grid[1]))
        found = [call for call in trace if call.stack == "vision"]
        if not found:
            raise HubError(
                "No attention of {name} over the picture could be seen: its code computes it in its own way.",
                name=self.model_name,
            )
        tokens = self.processor.tokens(found[0].num_keys, grid)
        return HubRun(
            self.tokenizer.read(ids),
            trace,
            self.output_of(result)[0],
            num_prompt_tokens=len(ids),
            image=as_rgb(inputs.image),
            inputs=encoded,
            num_unknown=self.tokenizer.num_unknown(ids),
            frame=Frame(self.processor.picture(pixels), grid, tokens),
        )

    def output_of(self, result: Any) -> tuple[Float[Tensor, " read"], tuple[Label, ...]]:
        """Cosine of a text with a picture, -1 to 1, then with each token of the picture that was not pooled.

        CLIP: cos(W_v norm(x_i), t), the class token's first. The model was trained on that: times exp(logit_scale) it
        is the model's own logit. A patch is projected by the same norm and matrix, for which it was not trained: a
        patch on the object that the text names may be the least similar to it (Li 2023, "CLIP Surgery", section 3).

        SigLIP has no class token: a head of attention pools the patches, f(sum_i a_i W x_i), and that is the first. A
        patch is projected by the same head with attention to it alone, f(W x_i).
        """
        states = result.vision_model_output.last_hidden_state[0]
        if self.pools_patches:
            alone = self.model.vision_model.head(states[:, None])  # each patch a picture of one patch
            projected = torch.cat((result.vision_model_output.pooler_output, alone))
        else:
            projected = self.model.visual_projection(self.model.vision_model.post_layernorm(states))
        return F.cosine_similarity(projected, result.text_embeds, dim=-1).float().cpu(), ()

    @property
    def pools_patches(self) -> bool:
        """Whether a head of attention makes one vector of the patches, in place of a class token."""
        return hasattr(self.model.vision_model, "head")
