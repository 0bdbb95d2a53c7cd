"""A picture and a text read by a vision-language model: recorded, against fused without maps; memory with the model."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import partial
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from benchmarks.memory import MB, Peak
from benchmarks.random_models import WAYS
from benchmarks.recording import PEERS, UNKNOWN
from benchmarks.report import Row
from benchmarks.serving import ROOT
from viz_core.hub import register
from viz_core.hub.runs.tower_maps import PartialRecording, one_frame
from viz_core.runtime.memory import return_freed_memory
from viz_core.trace import Trace, name_sites, record


@dataclass(frozen=True)
class Shape:
    """Sizes of a SmolVLM, and of what it reads: a picture in so many frames, and so many words."""

    width: int = 576
    layers: int = 30
    heads: int = 9
    key_heads: int = 3
    eye_width: int = 768
    eye_layers: int = 12
    eye_heads: int = 12
    side: int = 512
    frames: int = 5
    words: int = 100

    @property
    def patches(self) -> int:
        """Of a frame, as the language model reads them: 16 pixels a patch, 4 x 4 merged."""
        return (self.side // 64) ** 2


SMALLEST = Shape()  # SmolVLM-256M, with 2 x 2 tiles and the whole picture
TRY_OUT = Shape(36, 2, 3, 1, 24, 2, 2, 64, 2, 5)
QUICK = {"shape": TRY_OUT, "samples": 1}
TARGET = 1.05


def measure(shape: Shape = SMALLEST, samples: int = 3) -> list[Row]:
    """Seconds of the pass, and megabytes of the process at its peak: model, pass and recording together.

    Raises:
        RuntimeError: if a fresh process fails.
    """
    found = {way: in_fresh_process(way, shape, samples) for way in ("record", "fused")}
    ours, fused = found["record"], found["fused"]
    count = shape.frames * shape.patches + shape.words
    what = f"{count} tokens, {shape.frames} frames of a picture among them"
    rows = [Row(f"read and record {what}", "s", ours.seconds, PEERS["fused"], fused.seconds)]
    if ours.peak is None or fused.peak is None:
        return [*rows, Row(f"peak memory with the model, {what}", "MB", (), PEERS["fused"], note=UNKNOWN)]
    peaks = (ours.peak / MB,), PEERS["fused"], (fused.peak / MB,)
    return [
        *rows,
        Row(f"peak memory with the model, {what}", "MB", *peaks, TARGET, relative=True),
        Row(f"stored for viewing, {what}", "MB", (ours.held / MB,)),
    ]


@dataclass(frozen=True)
class Found:
    """What a process measured."""

    seconds: tuple[float, ...]
    peak: float | None
    held: float


def in_fresh_process(way: str, shape: Shape, samples: int) -> Found:
    """Some passes in an interpreter that does nothing else."""
    command = [sys.executable, "-m", "benchmarks.picture_text", way, json.dumps(asdict(shape)), str(samples)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(f"{' '.join(command[1:3])} failed: {answer.stderr[-500:]}")
    seconds, peak, held = json.loads(answer.stdout.splitlines()[-1])
    return Found(tuple(seconds), peak, held)


def smolvlm(way: str, shape: Shape) -> Any:
    """A model of this shape with random weights, the same whichever way its attention runs."""
    from transformers import AutoModelForImageTextToText, SmolVLMConfig

    register()
    torch.manual_seed(0)
    text = {"model_type": "llama", "vocab_size": 49280, "hidden_size": shape.width, "num_hidden_layers": shape.layers}
    text |= {"intermediate_size": 8 * shape.width // 3, "num_attention_heads": shape.heads, "head_dim": 64}
    text |= {"num_key_value_heads": shape.key_heads, "tie_word_embeddings": True}
    context = {"hidden_size": shape.eye_width, "intermediate_size": 4 * shape.eye_width, "image_size": shape.side}
    context |= {"num_hidden_layers": shape.eye_layers, "num_attention_heads": shape.eye_heads, "patch_size": 16}
    config = SmolVLMConfig(text_config=text, vision_config=context, scale_factor=4, image_token_id=49190)
    model = AutoModelForImageTextToText.from_config(config, attn_implementation=WAYS[way])
    name_sites(model, "decoder")
    return model.eval().requires_grad_(False)


def inputs_of(shape: Shape) -> dict[str, Tensor]:
    """A noisy picture in frames, and words after it."""
    draw = torch.Generator().manual_seed(1)
    words = torch.randint(3, 49000, (1, shape.words), generator=draw)
    ids = torch.cat((torch.full((1, shape.frames * shape.patches), 49190), words), dim=1)
    pixels = torch.randn(1, shape.frames, 3, shape.side, shape.side, generator=draw)
    return {"input_ids": ids, "pixel_values": pixels}


@torch.inference_mode()
def read(way: str, model: Any, inputs: dict[str, Tensor]) -> Trace | None:
    """One pass, as the lab does it."""
    if way != "record":
        model(**inputs, use_cache=False, logits_to_keep=1)
        return None
    with record(kind=partial(PartialRecording, tower=one_frame)) as trace:
        model(**inputs, use_cache=False, logits_to_keep=1)
    return trace


def _passes(way: str, shape: Shape, samples: int) -> tuple[list[float], float | None, float]:
    return_freed_memory()  # as where the lab's models run
    model, inputs, peak = smolvlm(way, shape), inputs_of(shape), Peak()
    seconds, held = [], 0.0
    peak.start()
    for _ in range(samples):
        start = perf_counter()
        trace = read(way, model, inputs)
        seconds.append(perf_counter() - start)
        held = float(trace.nbytes) if trace is not None else 0.0
        del trace
    most = peak.stop()
    return seconds, None if most is None else peak.before + most, held


if __name__ == "__main__":
    print(json.dumps(_passes(sys.argv[1], Shape(**json.loads(sys.argv[2])), int(sys.argv[3]))))
