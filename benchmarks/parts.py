"""The parts of the benchmark, and where each can run."""

from __future__ import annotations

import importlib
import inspect

from benchmarks.report import Row

# A part is a module of this package with `measure(...) -> list[Row]`, and QUICK, arguments for a try-out.
PARTS = (
    "recording",
    "picture_text",
    "map_queries",
    "long_maps",
    "attention_view",
    "long_inputs",
    "sinusoid_heatmap",
    "rotary",
    "translating",
    "heads_off",
    "circuits",
    "walk",
    "corpus",
    "learning",
    "starting",
    "visiting",
    "static_site",
)
SAVED = (*PARTS, "load", "growth")  # all that is kept, in the order of the tables; the last two run by themselves


def devices(part: str, wanted: str | None = None) -> list[str]:
    """Where a part runs: on the CPU, and on a GPU as well if it can and there is one; or only where it is wanted."""
    import torch

    module = importlib.import_module(f"benchmarks.{part}")
    able = ["cpu", "cuda"] if "device" in inspect.signature(module.measure).parameters else ["cpu"]
    there = [device for device in able if device == "cpu" or torch.cuda.is_available()]
    return [device for device in there if wanted in (None, device)]


def measured(part: str, device: str, quick: bool) -> list[Row]:
    """The rows of a part."""
    module = importlib.import_module(f"benchmarks.{part}")
    where = {} if device == "cpu" else {"device": device}
    return module.measure(**where, **(module.QUICK if quick else {}))
