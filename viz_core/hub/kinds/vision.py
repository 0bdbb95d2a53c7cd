"""Vision models over one grid of patches: ViT, DINOv2, towers of CLIP and SigLIP that stand alone."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from PIL.Image import Image
from torch import Tensor

from viz_core.hub.kinds.base import ConfigFacts, Head, InputControl, ModelKind
from viz_core.hub.runs.pictures import PictureInput, load_image_processor
from viz_core.hub.runs.run import HubRun, RunInputs, name_outside
from viz_core.hub.store import HubError
from viz_core.hub.store.files import LocalModel

_TOWERS = ("clip_vision_model", "siglip_vision_model")
_NO_GRID = "{name} windows or joins its patches from layer to layer: there is no one grid to show."


@dataclass(frozen=True, eq=False)
class Vision(ModelKind):
    """Reads a picture."""

    name = "vision"
    order = 2
    stack = "encoder"
    inputs = frozenset({"image"})
    input_label = "pictures"
    controls = (InputControl("picture", "picture", "image"),)
    features = frozenset({"switches", "hidden-tokens", "vision-chapter"})
    input_part = "image processor"

    processor: PictureInput

    @classmethod
    def recognise(cls, facts: ConfigFacts) -> tuple[str, Head] | None:
        if facts.model_type in _TOWERS:
            return "AutoModel", ""
        if not facts.has_model_for("image-classification") or not hasattr(facts.config, "patch_size"):
            return None
        if hasattr(facts.config, "depths") and hasattr(facts.config, "num_heads"):  # stages of attention, as in Swin
            raise HubError(_NO_GRID, name=facts.name)
        if "ForImageClassification" in facts.architecture:
            return "AutoModelForImageClassification", "labels"
        return "AutoModel", ""

    @classmethod
    def load_inputs(cls, place: LocalModel, model: Any) -> dict[str, Any]:
        size = model.config.patch_size
        patch = tuple(size) if isinstance(size, (list, tuple)) else (size, size)
        has_registers = "register" in model.config.model_type or hasattr(model.config, "num_register_tokens")
        return {"processor": PictureInput(load_image_processor(place), patch, has_registers)}

    def card_fields(self) -> dict[str, Any]:
        sizes = {"picture_size": self.processor.size, "patch_size": self.processor.patch_size}
        return super().card_fields() | sizes

    def run(self, inputs: RunInputs) -> HubRun:
        assert isinstance(inputs.image, Image)  # checked before
        return self.run_on_pixels(self.processor.encode(inputs.image))

    def run_on_pixels(self, pixels: Float[Tensor, "1 channels height width"]) -> HubRun:
        """One recorded pass over a picture that is prepared already."""
        rows, columns = grid = self.processor.grid(pixels)
        inputs = {"pixel_values": self.on_device(pixels)}
        try:
            result, trace = self.recorded(inputs, rows * columns)
        except HubError:
            raise
        except ValueError as error:
            raise HubError("The model cannot take this picture: {detail}", detail=str(error)) from None
        sizes = {(call.source.shape[0], call.num_queries, call.num_keys) for call in trace if not name_outside(call)}
        if len(sizes) != 1 or next(iter(sizes))[0] != 1:
            raise HubError(_NO_GRID, name=self.model_name)
        tokens = self.processor.tokens(next(iter(sizes))[2], grid)
        output, labels = self.output_of(result)
        return HubRun(
            tokens,
            trace,
            output,
            num_prompt_tokens=len(tokens),
            labels=labels,
            grid=grid,
            image=self.processor.picture(pixels),
            inputs=inputs,
        )
