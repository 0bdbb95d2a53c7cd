"""Vision-language models, which continue a text with a picture or a video in it: LLaVA, SmolVLM, InternVL, Qwen-VL."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from PIL.Image import Image
from torch import Tensor
from torch.nn.functional import pad

from viz_core.hub.kinds.base import ConfigFacts, Head, InputControl
from viz_core.hub.kinds.decoder import DecoderKind
from viz_core.hub.runs.layouts import LAYOUTS, layout_of
from viz_core.hub.runs.picture_prompt import PicturePrompt, with_patches
from viz_core.hub.runs.pictures import PartialRecording, load_image_processor
from viz_core.hub.runs.run import HubRun, RunInputs
from viz_core.hub.runs.tokenizers import load_tokenizer
from viz_core.hub.store.files import LocalModel
from viz_core.images.open_image import Video, as_rgb


@dataclass(frozen=True, eq=False)
class VisionLanguage(DecoderKind):
    """Continues a text with a picture or a video in it, then reads all of it once."""

    name = "vision-language"
    order = 5
    inputs = frozenset({"text", "image", "video", "target"})
    input_label = "both"
    controls = (
        InputControl("picture", "picture", "image"),
        InputControl("asked", "area", "text", initial="start.vision-language"),
        InputControl("new", "writing", least=0, default=12),
    )
    takes_token_ids = False
    in_batches = False
    features = frozenset({"switches"})
    picture_text_types = tuple(LAYOUTS)
    input_part = "processor"
    vision_refusal = "{name} takes a picture and a text together."
    _does_not_fit = (
        "The picture and the text together have {count:,} tokens; the model takes at most {most:,}. "
        "Shorten the text, or bring a smaller picture."
    )
    _not_allowed = (
        "The picture and the text together have {count:,} tokens; at most {most:,} are allowed here. "
        "Shorten the text, or bring a smaller picture."
    )

    prompt: PicturePrompt  # puts a picture into a text

    @classmethod
    def recognise(cls, facts: ConfigFacts) -> tuple[str, Head] | None:
        if not facts.has_vision_config or facts.model_type not in cls.picture_text_types:
            return None
        # A Pixtral's tower takes pictures of sizes of their own, though its config is a LLaVA's.
        if getattr(facts.config.vision_config, "model_type", "") == "pixtral":
            return None
        return "AutoModelForImageTextToText", "words"

    @classmethod
    def load_inputs(cls, place: LocalModel, model: Any) -> dict[str, Any]:
        tokenizer, text = load_tokenizer(place, model)
        processor = load_image_processor(place)
        layout = layout_of(model.config, tokenizer.get_vocab())
        prompt = PicturePrompt.of(layout, model, processor, tokenizer, text, place)
        return {"tokenizer": text, "prompt": prompt}

    def card_fields(self) -> dict[str, Any]:
        layout = self.prompt.layout
        fields = {"prompt": layout.template, "both_ways": layout.both_ways}
        return super().card_fields() | fields | {"takes_video": layout.encode_video is not None}

    def run(self, inputs: RunInputs) -> HubRun:
        given = inputs.video or inputs.image
        assert isinstance(given, Video | Image)  # checked before
        prompt = self.prompt.prepare(inputs.text or "", given, inputs.target)
        count = len(prompt.whole or prompt.inputs["input_ids"][0])
        self.check_length(count, self.max_positions("decoder"), inputs.max_tokens)
        encoded = {name: self.on_device(value) for name, value in prompt.inputs.items()}
        run = self.continued(encoded, prompt.whole, inputs)
        if not any(call.stack == "decoder" for call in run.trace):
            raise self.no_attention_error()
        return replace(
            run,
            tokens=with_patches(run.tokens, prompt.grids, prompt.row_ends),
            image=as_rgb(given) if isinstance(given, Image) else None,
            video=given if isinstance(given, Video) else None,
            prompt=prompt.text,
            patches=prompt.grids,
            frame=prompt.frame,
        )

    def extra_inputs(self, prompt: dict[str, Tensor], num_tokens: int) -> Mapping[str, Tensor]:
        beside = {name: value for name, value in prompt.items() if name not in ("input_ids", "attention_mask")}
        if self.prompt.layout.types is not None:
            name, *_, of_written = self.prompt.layout.types
            beside[name] = pad(beside[name], (0, num_tokens - beside[name].shape[1]), value=of_written)
        return beside

    def never_written(self) -> tuple[int, ...]:
        return (self.prompt.patch_id, self.prompt.video_id)

    def recording(self, inputs: Mapping[str, Any]) -> Any:
        return partial(PartialRecording, tower=self.prompt.layout.tower(self.prompt.context, inputs))
