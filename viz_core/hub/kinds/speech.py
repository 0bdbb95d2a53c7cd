"""Speech models, which write what is said in a sound: Whisper (Radford 2023)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from viz_core.hub.kinds.base import ConfigFacts, Head, InputControl, TextKind
from viz_core.hub.runs.generation import GREEDY, write
from viz_core.hub.runs.run import HubRun, RunInputs
from viz_core.hub.runs.sound_input import (
    SoundFeatures,
    SpectrogramInput,
    aligning_heads,
    languages_of,
    load_sound_input,
    tasks_of,
)
from viz_core.hub.store import HubError
from viz_core.hub.store.files import LocalModel
from viz_core.sounds.sound import Sound

_NUM_PROMPT_TOKENS = 8  # start, language, task, no times: the decoder is given these before it writes
# One call of the model with one return value, and no marks of time among the words: heads align them.
_ONE_CALL: dict[str, Any] = {
    "return_timestamps": False,
    "return_dict_in_generate": True,
    "force_unique_generate_call": True,
}


@dataclass(frozen=True, eq=False)
class Speech(TextKind):
    """Writes what is said in a sound, then goes through all of it once."""

    name = "speech"
    order = 0
    stack = None
    inputs = frozenset({"sound", "target"})
    input_label = "sound"
    controls = (
        InputControl("sound", "sound", "sound"),
        InputControl("spoken", "speech-options"),
        InputControl("said", "line", "target", placeholder="placeholder.target"),
        InputControl("new", "writing", least=1, default=200),
    )
    features = frozenset({"switches"})
    new_tokens = 200
    input_part = "processor"

    sound_input: SpectrogramInput

    @classmethod
    def recognise(cls, facts: ConfigFacts) -> tuple[str, Head] | None:
        return ("AutoModelForSpeechSeq2Seq", "words") if facts.model_type == "whisper" else None

    @classmethod
    def load_inputs(cls, place: LocalModel, model: Any) -> dict[str, Any]:
        inputs = super().load_inputs(place, model)
        return inputs | {"sound_input": load_sound_input(place.path, model.config, place.name)}

    def card_fields(self) -> dict[str, Any]:
        config, count = self.model.generation_config, self.model.config.vocab_size
        return super().card_fields() | {
            "sound_seconds": self.sound_input.max_seconds,
            "languages": languages_of(config, count),
            "tasks": tasks_of(config, count),
        }

    def run(self, inputs: RunInputs) -> HubRun:
        assert isinstance(inputs.sound, Sound)  # checked before
        spectrogram, num_frames = self.sound_input.encode(inputs.sound)
        spectrogram = self.on_device(spectrogram)
        longest = self.max_decoder_positions(inputs.max_tokens)
        longest = inputs.budget if longest is None else longest - _NUM_PROMPT_TOKENS
        prompt, written = self._write(spectrogram, longest, inputs)
        ids = [*prompt, *written]
        read = {"input_features": spectrogram, "decoder_input_ids": torch.tensor([ids[:-1]], device=self.device)}
        num_keys = self.model.config.max_source_positions
        result, trace = self.recorded(read, num_keys, use_cache=False)
        tokens = self.sound_input.tokens(num_keys)
        return HubRun(
            tokens,
            trace,
            self.last_logits(result.logits),
            num_prompt_tokens=len(tokens),
            decoder_tokens=self.tokenizer.read(ids[:-1]),
            target_tokens=self.tokenizer.read(ids[1:]),
            text=self.tokenizer.decode(written),
            complete=ids[-1] in self.ends(),
            inputs={**read, "use_cache": False},
            sound=self._features(inputs.sound, spectrogram, num_frames, len(prompt)),
        )

    def _write(self, spectrogram: Tensor, longest: int, inputs: RunInputs) -> tuple[list[int], list[int]]:
        """The decoder's prompt, and what it writes, or the target; then one token is written, for the prompt."""
        has_target = inputs.target is not None
        budget = 1 if has_target else max(1, min(inputs.budget, longest))
        lengths: list[int] = []  # before each token that is written: a model may detect the language by itself

        def on_length(ids: Tensor, scores: Tensor) -> Tensor:
            lengths.append(ids.shape[1])
            return scores

        ids = write(
            self.model,
            {"input_features": spectrogram},
            budget,
            GREEDY if has_target else inputs.sampling,
            inputs.max_seconds,
            watching=[on_length],
            language=inputs.language and f"<|{inputs.language}|>",
            task=inputs.task,
            **_ONE_CALL,
        )
        prompt, written = ids[: lengths[0]], ids[lengths[0] :]
        if inputs.target is not None:
            written = [*self._target_ids(inputs.target, longest), *self.ends()[:1]]
        return prompt, written

    def _target_ids(self, target: str, longest: int) -> list[int]:
        """The ids of a target, after the prompt: it begins with a blank, as words do that follow others."""
        encoded = self.tokenizer.encode(f" {target.strip()}", target=True)["input_ids"][0].tolist()
        ids = [token.id for token in self.tokenizer.read(encoded) if not token.special]
        if len(ids) > longest:
            raise HubError(
                "This text has {count:,} tokens; the model writes at most {most:,}. Shorten it.",
                count=len(ids),
                most=longest,
            )
        return ids

    def _features(self, sound: Sound, spectrogram: Tensor, num_frames: int, num_prompt_tokens: int) -> SoundFeatures:
        given, config = self.sound_input, self.model.config
        named = getattr(self.model.generation_config, "alignment_heads", None)
        num_frames = max(num_frames, given.frames_per_key)
        return SoundFeatures(
            sound,
            spectrogram[0, :, :num_frames].float().cpu(),
            given.frame_seconds,
            num_frames // given.frames_per_key,
            given.key_seconds,
            num_prompt_tokens,
            *aligning_heads(named, config.decoder_layers, config.decoder_attention_heads),
        )
