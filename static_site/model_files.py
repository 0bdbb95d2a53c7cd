"""Files of models: ONNX graphs whose weights lie in one file beside them, and tokenizers as JSON for the scripts."""

from __future__ import annotations

import gzip
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from tokenizers import Tokenizer
from torch import Tensor, nn

from static_site.files import SiteFiles
from viz_core.runtime.assets import ASSETS

WEIGHTS = "weights"
"""The name under which graphs refer to the file of their weights."""

SHARED_FROM = 256
"""Tensors of fewer numbers stay in their graph."""


def empty_graph() -> bytes:
    """A graph that returns its input: a session of it starts the runtime while weights are still on their way."""
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "empty", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return model.SerializeToString(deterministic=True)


@dataclass
class WeightStore:
    """The weights of one model: float16 exactly as its checkpoint has them, each tensor once.

    Attributes:
        named: the model's tensors, by name; of several names for one tensor the first counts.
        made: tensors that the browser computes by a formula, by name: how.
        places: offset in bytes of each tensor in use, as it is or transposed, once the browser has unpacked the file to
            float32. Graphs find each matrix as they multiply by it, so that a session starts without transposing any.
    """

    named: Mapping[str, Tensor]
    made: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    places: dict[tuple[str, bool], int] = field(default_factory=dict)
    size: int = 0

    def find(self, values: np.ndarray) -> tuple[str, bool] | None:
        """The name of the tensor with these values, and whether they are its transpose."""
        for name, tensor in self.named.items():
            own = tensor.detach().numpy()
            if own.shape == values.shape and np.array_equal(own, values):
                return name, False
            if own.ndim == 2 and own.shape == values.shape[::-1] and np.array_equal(own.T, values):
                return name, True
        return None

    def place(self, name: str, transposed: bool) -> tuple[int, int]:
        """Offset and length in bytes of a tensor within the unpacked file."""
        length = 4 * self.named[name].numel()
        if (name, transposed) not in self.places:
            self.places[name, transposed] = self.size
            self.size += length
        return self.places[name, transposed], length

    @property
    def stored(self) -> list[str]:
        """Names of the tensors in the file, in their order."""
        return [name for name in dict.fromkeys(name for name, _ in self.places) if name not in self.made]

    def packed(self) -> bytes:
        """The stored tensors as float16, compressed: first the lower bytes of all numbers, then the higher ones.

        Raises:
            ValueError: if a tensor has numbers that float16 does not.
        """
        parts = []
        for name in self.stored:
            values = self.named[name].detach().numpy()
            half = values.astype("<f2")
            if not np.array_equal(half.astype(np.float32), values):
                raise ValueError(f"{name}: expected numbers that float16 has, got others")
            parts.append(half.ravel())
        planes = np.concatenate(parts).view(np.uint8).reshape(-1, 2).T
        return gzip.compress(planes.tobytes(), 9, mtime=0)

    def index(self) -> str:
        """What the browser needs to unpack the file, as JSON: each tensor's shape, and where it goes."""
        tensors = []
        for name in [*self.stored, *self.made]:
            where = {"offset": self.places.get((name, False)), "transposed": self.places.get((name, True))}
            made = {"made": self.made[name]} if name in self.made else {}
            tensors.append({"name": name, "shape": list(self.named[name].shape)} | where | made)
        return json.dumps({"bytes": self.size, "tensors": tensors}, indent=1)


def export_graph(
    module: nn.Module,
    inputs: tuple[Any, ...],
    dynamic_shapes: tuple[Any, ...],
    names: Sequence[str],
    store: WeightStore,
) -> bytes:
    """Return an ONNX graph whose large tensors lie in `store`.

    Args:
        module: returns its outputs by name.
        dynamic_shapes: of `inputs`, as `torch.export` takes them.
        names: of the inputs.
    """
    with _quiet(), torch.inference_mode():
        output_names = list(module.eval()(*inputs))
    with _quiet():
        program = torch.onnx.export(
            module,
            inputs,
            dynamo=True,
            dynamic_shapes=dynamic_shapes,
            input_names=names,
            output_names=output_names,
            external_data=False,
            optimize=True,
            verbose=False,
        )
    assert program is not None
    return _with_shared_weights(program.model_proto, store).SerializeToString(deterministic=True)


def _with_shared_weights(model: onnx.ModelProto, store: WeightStore) -> onnx.ModelProto:
    graph = model.graph
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.size < SHARED_FROM:
            continue
        found = store.find(values)
        if found is None:
            raise ValueError(f"{tensor.name}: expected a tensor of the model, got shape {values.shape}")
        offset, length = store.place(*found)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", WEIGHTS), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
    for node in graph.node:  # where it came from: paths of this machine
        del node.metadata_props[:]
        node.doc_string = ""
    for value in (*graph.input, *graph.output):
        del value.metadata_props[:]
    for function in model.functions:
        del function.metadata_props[:]
    del graph.value_info[:], graph.metadata_props[:], model.metadata_props[:]
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter reports of libraries that are not needed."""
    import logging

    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def tokenizer_json(tokenizer: Tokenizer) -> str:
    """A tokenizer as Hugging Face's library for browsers reads it.

    Special tokens in a text are text where `encode_special_tokens` says so: the library has no such switch, so it knows
    of no special tokens then. Scripts have no pattern that ignores case by itself: its letters stand in both cases.
    """
    content = json.loads(tokenizer.to_str())
    if tokenizer.encode_special_tokens:
        content["added_tokens"] = []
    for step in content["pre_tokenizer"]["pretokenizers"]:
        pattern = step.get("pattern", {})
        if pattern.get("Regex", "").startswith("(?i)"):
            pattern["Regex"] = _in_both_cases(pattern["Regex"].removeprefix("(?i)"))
    return json.dumps(content, ensure_ascii=False)


def compressed(text: str) -> bytes:
    """A text as the browser unpacks it, since many hosts compress nothing."""
    return gzip.compress(text.encode(), 9, mtime=0)


def _in_both_cases(pattern: str) -> str:
    def both(found: re.Match[str]) -> str:
        text = found[0]
        if text[0] == "[":
            return re.sub(r"\\p\{\w+\}|\\\w|[a-z]", lambda part: part[0] + part[0].upper() * (len(part[0]) == 1), text)
        return f"[{text}{text.upper()}]" if len(text) == 1 else text

    return re.sub(r"\[[^\]]*\]|\\p\{\w+\}|\\\w|[a-z]", both, pattern)


def add_text_tokenizer(files: SiteFiles, model: str) -> dict[str, object]:
    """Add the tokenizer of a model of assets/hub."""
    tokenizer = Tokenizer.from_file(str(ASSETS / "hub" / model / "tokenizer.json"))
    return files.add(f"models/{model}/tokenizer.json.gz", compressed(tokenizer_json(tokenizer)))
