"""One way through each kind of model: write where it writes, then one recorded pass over everything."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from viz_core.hub.contrastive import similarities
from viz_core.hub.engine import Engine
from viz_core.hub.errors import HubError
from viz_core.hub.generation import Writing, write
from viz_core.hub.picture_prompt import with_patches
from viz_core.hub.run import HubRun, Label
from viz_core.images.open_image import as_rgb

_LOGIT_BYTES = 64 * 2**20  # of logits that a run keeps
_MAX_LABELS = 20


def read_text(engine: Engine, text: str, pair: str | None, most: int | None) -> HubRun:
    """An encoder reads a text, or two.

    Raises:
        HubError: if a text is empty or too long.
    """
    inputs = engine.encode(text, pair, most=most)
    ids = _ids(inputs)
    states: dict[str, Any] = {"output_hidden_states": True} if engine.family.head == "mask" else {}
    result, trace = engine.recorded(inputs, len(ids), **states)
    output, labels = _output(engine, result)
    given = {**inputs, **states}
    return HubRun(
        engine.tokenizer.read(ids),
        trace,
        output,
        num_prompt_tokens=len(ids),
        labels=labels,
        inputs=given,
        num_unknown=engine.tokenizer.num_unknown(ids),
    )


def look_at_picture(engine: Engine, image: Image.Image) -> HubRun:
    """A vision model looks at a picture.

    Raises:
        HubError: if the model cannot take it, or has no grid of patches.
    """
    return look_at_pixels(engine, engine.processor.encode(image))


def look_at_pixels(engine: Engine, pixels: Float[Tensor, "1 channels height width"]) -> HubRun:
    """The same with a picture that is prepared already.

    Raises:
        HubError: as `look_at_picture` does.
    """
    rows, columns = grid = engine.processor.grid(pixels)
    try:
        inputs = {"pixel_values": pixels.to(engine.device, engine.model.dtype)}
        result, trace = engine.recorded(inputs, rows * columns)
    except HubError:
        raise
    except ValueError as error:
        raise HubError("The model cannot take this picture: {detail}", detail=str(error)) from None
    sizes = {(call.source.shape[0], call.num_queries, call.num_keys) for call in trace}
    if len(sizes) > 1 or next(iter(sizes))[0] != 1:
        raise HubError(
            "{name} windows or joins its patches from layer to layer: there is no one grid to show.", name=engine.name
        )
    tokens = engine.processor.tokens(next(iter(sizes))[2], grid)
    output, labels = _output(engine, result)
    seen = engine.processor.picture(pixels)
    return HubRun(
        tokens, trace, output, num_prompt_tokens=len(tokens), labels=labels, grid=grid, image=seen, inputs=inputs
    )


def continue_text(engine: Engine, text: str, writing: Writing) -> HubRun:
    """A decoder continues a text, by itself or as it is told, and then reads all of it once.

    Raises:
        HubError: if the text is empty or too long, or leaves no room to write.
    """
    inputs, room = _prompt(engine, text, writing.max_tokens)
    target = writing.target
    whole = None if target is None else _ids(engine.encode(text + target, most=writing.max_tokens))
    return _continued(engine, inputs, whole, room, writing)


def tell_of_picture(engine: Engine, text: str, image: Image.Image, writing: Writing) -> HubRun:
    """A vision-language model continues a text with a picture in it, and then reads all of it once.

    Raises:
        HubError: if the text is empty, the picture cannot be prepared, or both together are too long.
    """
    prompt = engine.prompt.prepare(text, image, writing.target)
    room = _room(engine, writing.max_tokens)
    count = len(prompt.whole or prompt.inputs["input_ids"][0])
    engine.check_length(count, engine.room("decoder"), writing.max_tokens)
    inputs = {name: _on_device(engine, value) for name, value in prompt.inputs.items()}
    run = _continued(engine, inputs, prompt.whole, room, writing)
    if not any(call.stack == "decoder" for call in run.trace):
        raise HubError(
            "No attention of {name} could be seen: its code computes it in a way of its own.", name=engine.name
        )
    return replace(
        run,
        tokens=with_patches(run.tokens, prompt.grids, prompt.row_ends),
        image=as_rgb(image),
        prompt=prompt.text,
        patches=prompt.grids,
        frame=prompt.frame,
    )


def _continued(
    engine: Engine, inputs: dict[str, Tensor], whole: list[int] | None, room: int | None, writing: Writing
) -> HubRun:
    """What a model writes after a prompt, or `whole`, read once with all that the prompt gives it beside the ids."""
    prompt = _ids(inputs)
    complete = True
    if whole is not None:
        ids = whole
        prompt = prompt[: _num_shared(prompt, ids)]
    else:
        most = writing.max_new_tokens
        budget = most if room is None else min(most, room - len(prompt))
        never = () if engine.both is None else (engine.both.patch_id,)
        chosen = writing.sampling, writing.max_seconds
        ids = write(engine.model, inputs, budget, *chosen, never) if budget > 0 else prompt
        complete = most == 0 or ids[-1] in ends(engine)
    options: dict[str, Any] = {"use_cache": False}
    if "logits_to_keep" in inspect.signature(engine.model.forward).parameters:
        options["logits_to_keep"] = _num_kept(engine, len(ids))
    beside = {} if engine.both is None else engine.both.extended_inputs(inputs, len(ids))
    inputs = {"input_ids": torch.tensor([ids], device=engine.device), **beside}
    result, trace = engine.recorded(inputs, len(ids), **options)
    return HubRun(
        engine.tokenizer.read(ids),
        trace,
        kept_logits(engine, result.logits),
        num_prompt_tokens=len(prompt),
        text=engine.tokenizer.decode(ids[len(prompt) :]),
        complete=complete,
        inputs={**inputs, **options},
        num_unknown=engine.tokenizer.num_unknown(prompt),
    )


def translate_text(engine: Engine, text: str, writing: Writing) -> HubRun:
    """An encoder-decoder writes for a text, by itself or as it is told, and then goes through both once.

    Raises:
        HubError: if the text or the target is empty or too long.
    """
    inputs, room = _prompt(engine, text, writing.max_tokens)
    complete = True
    if writing.target is not None:
        written = engine.encode(writing.target, most=writing.max_tokens, target=True)["input_ids"]
        read_ids = _ids({"input_ids": engine.model.prepare_decoder_input_ids_from_labels(labels=written)})
        target_ids = _ids({"input_ids": written})
    else:
        budget = max(1, writing.max_new_tokens if room is None else min(writing.max_new_tokens, room - 1))
        ids = write(engine.model, inputs, budget, writing.sampling, writing.max_seconds)
        read_ids, target_ids = ids[:-1], ids[1:]
        complete = target_ids[-1] in ends(engine)
    decoder_ids = torch.tensor([read_ids], device=engine.device)
    longest = max(inputs["input_ids"].shape[1], len(read_ids))
    given = {**inputs, "decoder_input_ids": decoder_ids}
    result, trace = engine.recorded(given, longest, use_cache=False)
    tokens = engine.tokenizer.read(_ids(inputs))
    return HubRun(
        tokens,
        trace,
        kept_logits(engine, result.logits),
        num_prompt_tokens=len(tokens),
        decoder_tokens=engine.tokenizer.read(read_ids),
        target_tokens=engine.tokenizer.read(target_ids),
        text=engine.tokenizer.decode(target_ids),
        complete=complete,
        inputs={**given, "use_cache": False},
        num_unknown=engine.tokenizer.num_unknown(_ids(inputs)),
    )


def output_again(engine: Engine, run: HubRun) -> Float[Tensor, "..."]:
    """What comes out of the pass that a run recorded, done again.

    Raises:
        HubError: if the memory does not suffice.
    """
    result = engine.again(run.inputs)
    if engine.family.kind == "dual-encoder":
        return similarities(engine, result)
    return kept_logits(engine, result.logits) if engine.family.head == "words" else _output(engine, result)[0]


def _prompt(engine: Engine, text: str, most: int | None) -> tuple[dict[str, Tensor], int | None]:
    """A text as ids that may all be looked at, and how many tokens a decoder has room for; None for any number."""
    ids = engine.encode(text, most=most)["input_ids"]
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, _room(engine, most)


def _room(engine: Engine, most: int | None) -> int | None:
    """How many tokens a decoder has room for, where a host allows `most`; None for any number."""
    return min((limit for limit in (engine.room("decoder"), most) if limit is not None), default=None)


def _on_device(engine: Engine, value: Tensor) -> Tensor:
    """What a model is given, on its device; pixels in its precision."""
    return value.to(engine.device, engine.model.dtype) if value.is_floating_point() else value.to(engine.device)


def _ids(inputs: dict[str, Tensor]) -> list[int]:
    return [int(i) for i in inputs["input_ids"][0]]


def _num_shared(prompt: Sequence[int], ids: Sequence[int]) -> int:
    """How many first tokens a prompt and its continuation share: the last of the prompt may join with what follows."""
    pairs = zip(prompt, ids, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(prompt), len(ids)))


def ends(engine: Engine) -> tuple[int, ...]:
    """The tokens with which a model ends what it writes."""
    ends = engine.model.generation_config.eos_token_id
    return tuple(ends) if isinstance(ends, list) else () if ends is None else (ends,)


def _num_kept(engine: Engine, num_tokens: int) -> int:
    words = engine.model.config.get_text_config(decoder=True).vocab_size
    return max(1, min(num_tokens, _LOGIT_BYTES // (4 * words)))


def kept_logits(engine: Engine, logits: Tensor) -> Float[Tensor, "positions words"]:
    """The logits of as many of the last positions as a run keeps."""
    return logits[0, -_num_kept(engine, logits.shape[1]) :].float().cpu()


def _output(engine: Engine, result: Any) -> tuple[Float[Tensor, "..."], tuple[Label, ...]]:
    """Last hidden states, or the logits of classes and what they mean."""
    if engine.family.head != "labels":
        states = result.hidden_states[-1] if engine.family.head == "mask" else result.last_hidden_state
        return states[0].float().cpu(), ()
    logits = result.logits[0].float().cpu()
    config = engine.model.config
    if getattr(config, "problem_type", None) == "regression" or len(logits) == 1:
        return logits, ()
    top = logits.softmax(dim=-1).topk(min(_MAX_LABELS, len(logits)))
    names = config.id2label
    return logits, tuple(
        Label(str(names.get(number, number)), probability)
        for number, probability in zip(top.indices.tolist(), top.values.tolist(), strict=True)
    )
