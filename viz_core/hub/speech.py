"""One way through a speech model: write what is heard, then one recorded pass over all of it."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from viz_core.hub.engine import Engine
from viz_core.hub.errors import HubError
from viz_core.hub.forward_passes import ends, kept_logits
from viz_core.hub.generation import GREEDY, Writing, write
from viz_core.hub.run import HubRun
from viz_core.hub.sound_input import SoundFeatures, aligning_heads
from viz_core.hub.speech_options import as_token
from viz_core.sounds.sound import Sound

_ROOM_FOR_PROMPT = 8  # start, language, task, no times: the decoder is given these before it writes
# One call, what it returns whole, and no marks of time among the words: heads tell the times.
_ONE_CALL: dict[str, Any] = {
    "return_timestamps": False,
    "return_dict_in_generate": True,
    "force_unique_generate_call": True,
}


def transcribe(engine: Engine, sound: Sound, writing: Writing) -> HubRun:
    """A speech model writes what it hears, by itself or as it is told, and then goes through all of it once.

    Raises:
        HubError: if the sound or the target is too long.
    """
    features, num_frames = engine.sound_input.encode(sound)
    features = features.to(engine.device, engine.model.dtype)
    limits = [limit for limit in (engine.room("decoder"), writing.max_tokens) if limit is not None]
    room = min(limits, default=writing.max_new_tokens + _ROOM_FOR_PROMPT) - _ROOM_FOR_PROMPT
    alone = writing.target is None
    budget = max(1, min(writing.max_new_tokens, room)) if alone else 1
    chosen = writing.sampling if alone else GREEDY, writing.max_seconds
    given = {"input_features": features}
    begins = _Beginning()
    options: dict[str, Any] = {"language": as_token(writing.language), "task": writing.task, **_ONE_CALL}
    ids = write(engine.model, given, budget, *chosen, watching=[begins], **options)
    prompt = ids[: begins.num_tokens]
    if writing.target is not None:
        ids = [*prompt, *_words(engine, writing.target, room), *ends(engine)[:1]]
    given |= {"decoder_input_ids": torch.tensor([ids[:-1]], device=engine.device)}
    num_keys = engine.model.config.max_source_positions
    result, trace = engine.recorded(given, num_keys, use_cache=False)
    tokens = engine.sound_input.tokens(num_keys)
    return HubRun(
        tokens,
        trace,
        kept_logits(engine, result.logits),
        num_prompt_tokens=len(tokens),
        decoder_tokens=engine.tokenizer.read(ids[:-1]),
        target_tokens=engine.tokenizer.read(ids[1:]),
        text=engine.tokenizer.decode(ids[len(prompt) :]),
        complete=ids[-1] in ends(engine),
        inputs={**given, "use_cache": False},
        sound=_sound_features(engine, sound, features, num_frames, len(prompt)),
    )


class _Beginning:
    """Sees how many tokens there are before the first that is written: a model may look for the language by itself."""

    def __init__(self) -> None:
        self.num_tokens = 0

    def __call__(self, ids: Int[Tensor, "batch tokens"], scores: Tensor) -> Tensor:
        self.num_tokens = self.num_tokens or ids.shape[1]
        return scores


def _words(engine: Engine, target: str, room: int) -> list[int]:
    """What it shall write as ids, after the prompt: a text begins with a blank, as words do that follow others.

    Raises:
        HubError: if it is empty or too long.
    """
    spoken = engine.tokenizer.encode(f" {target.strip()}", target=True)["input_ids"][0].tolist()
    ids = [token.id for token in engine.tokenizer.read(spoken) if not token.special]
    if len(ids) > room:
        raise HubError(
            "This text has {count:,} tokens; the model writes at most {most:,}. Shorten it.", count=len(ids), most=room
        )
    return ids


def _sound_features(
    engine: Engine, sound: Sound, features: Tensor, num_frames: int, num_prompt_tokens: int
) -> SoundFeatures:
    model, listener = engine.model, engine.sound_input
    sizes = model.config.decoder_layers, model.config.decoder_attention_heads
    aligning, named = aligning_heads(getattr(model.generation_config, "alignment_heads", None), *sizes)
    num_frames = max(num_frames, listener.frames_per_key)
    return SoundFeatures(
        sound,
        features[0, :, :num_frames].float().cpu(),
        listener.frame_seconds,
        num_frames // listener.frames_per_key,
        listener.key_seconds,
        num_prompt_tokens,
        aligning,
        named,
    )
