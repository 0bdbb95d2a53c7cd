"""A vision model of Hugging Face with the interface of the shipped classifiers."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from viz_core.hub.kinds.vision import Vision
from viz_core.hub.model import HubModel
from viz_core.hub.store import HubError
from viz_core.images.preprocessing import Prepared
from viz_core.maps.rollout import relevance_maps
from viz_core.models.vit import resize_grid
from viz_core.pretrained import Classification
from viz_core.trace import record


@dataclass(frozen=True, eq=False)
class HubVision:
    """A `viz_core.pretrained.classifier.PictureModel`. Threads may share it."""

    hub: HubModel

    def __post_init__(self) -> None:
        _ = self._engine, self._embedding  # both must be there

    @property
    def _engine(self) -> Vision:
        engine = self.hub.engine
        if not isinstance(engine, Vision):
            raise HubError(engine.vision_refusal, name=self.title)
        return engine

    @property
    def network(self) -> torch.nn.Module:
        """The torch module."""
        return self._engine.model

    @property
    def title(self) -> str:
        """The model's name."""
        return self.hub.card.name

    @property
    def labels(self) -> tuple[str, ...]:
        """Its classes; repeated names get a number."""
        if self._engine.head != "labels":
            return ()
        config = self._engine.model.config
        seen: dict[str, int] = {}
        names = []
        for number in range(config.num_labels):
            name = str(config.id2label.get(number, number))
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return tuple(names)

    @property
    def patch_size(self) -> tuple[int, int]:
        """Height and width of a patch in pixels."""
        return self._engine.processor.patch_size

    @property
    def filters(self) -> Float[Tensor, "num_hiddens channels height width"]:
        """The patch embedding's matrix, a filter a row."""
        return self._embedding.weight.detach().float().cpu()

    @property
    def filter_bias(self) -> Float[Tensor, " num_hiddens"]:
        """The patch embedding's bias."""
        bias = self._embedding.bias
        return torch.zeros(len(self.filters)) if bias is None else bias.detach().float().cpu()

    def position_table(self, grid: tuple[int, int]) -> Float[Tensor, "1 patches num_hiddens"] | None:
        """The learned positions of patches, brought to this grid; None where the model has no such table."""
        found = next((p for p in self.hub.positions if p.scheme == "learned"), None)
        if found is None:
            return None
        patches = found.values[found.num_special :]
        side = round(len(patches) ** 0.5)
        return resize_grid(patches, (side, side), grid)[None]

    def prepare(self, image: Image.Image) -> Prepared:
        """The picture as the model's own processor prepares it."""
        pixels = self._engine.processor.encode(image)
        return Prepared(pixels, self._engine.processor.picture(pixels), ("processor",))

    @torch.inference_mode()
    def classify_prepared(self, prepared: Prepared) -> Classification:
        """What is on the picture, with all attention recorded."""
        with self._engine.serial:
            run = self._engine.run_on_pixels(prepared.pixels)
        if run.grid is None:
            raise HubError("{name} has no grid of patches.", name=self.title)
        labels, probabilities = self.labels, {}
        if labels:
            chances = run.output.softmax(dim=-1)
            order = chances.argsort(descending=True, stable=True).tolist()
            probabilities = {labels[i]: float(chances[i]) for i in order}
        label = next(iter(probabilities), "")
        return Classification(label, probabilities, run.grid, run.trace, prepared, self.hub.made_of())

    @torch.inference_mode()
    def predict(
        self, pixels: Float[Tensor, "batch channels height width"], positions: bool = True
    ) -> Float[Tensor, "batch classes"]:
        """Probabilities of every label; without positions the model's table of them counts as zeros."""
        engine = self._engine
        if not self.labels:
            raise HubError("{name} names no classes.", name=self.title)
        inputs = {"pixel_values": pixels.to(engine.device, engine.model.dtype)}
        tables = {} if positions else {p.where: p.values for p in self.hub.positions if p.scheme == "learned"}
        parameters = dict(engine.model.named_parameters())
        zeros = {name: torch.zeros_like(parameters[name]) for name in tables}
        with engine.serial:
            result = torch.func.functional_call(engine.model, zeros, (), inputs)
        return result.logits.float().softmax(dim=-1).cpu()

    def relevance(self, prepared: Prepared, label: str) -> Float[Tensor, "tokens tokens"]:
        """Gradient-weighted relevance of each token (columns) to each (rows, the class token first) for this label."""
        engine, labels = self._engine, self.labels
        if label not in labels:
            raise HubError("{name} has no label {label!r}.", name=self.title, label=label[:60])
        if engine.holds_maps:
            raise HubError("The code of {name} gives whole maps, which no gradient reaches.", name=self.title)
        pixels = prepared.pixels.to(engine.device, engine.model.dtype)
        with engine.serial, torch.enable_grad(), record(differentiable=True) as trace:
            logits = engine.model(pixel_values=pixels).logits
            return relevance_maps(trace, logits[0, labels.index(label)])

    @property
    def _embedding(self) -> torch.nn.Conv2d:
        """The convolution that embeds patches: its kernel is a patch, and so is its stride."""
        for module in self._engine.model.modules():
            if isinstance(module, torch.nn.Conv2d) and module.kernel_size == self.patch_size == module.stride:
                return module
        raise HubError("{name} does not cut pictures into patches by one convolution.", name=self.title)
