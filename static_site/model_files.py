"""Files of models: ONNX graphs whose weights lie in one file beside them, and tokenizers as JSON for the scripts."""

from __future__ import annotations

import json
import logging
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
    """The weights of one model: exactly the float16 numbers of its checkpoint, each tensor once.

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

    def packed(self) -> tuple[bytes, str]:
        """The stored tensors as one file, and as JSON how the browser unpacks it.

        First float16 numbers: the lower bytes of all, then the higher ones. Then matrices on a grid: int8 q of all,
        then int8 e of all rows.

        Raises:
            ValueError: if a tensor has numbers that float16 does not.
        """
        halves, wholes, exponents = [np.empty(0, "<f2")], [np.empty(0, np.int8)], [np.empty(0, np.int8)]
        tensors = []
        for name in dict.fromkeys(sorted((name for name, _ in self.places), key=self.made.__contains__)):
            tensor: dict[str, Any] = {"name": name, "shape": list(self.named[name].shape)}
            tensor |= {"offset": self.places.get((name, False)), "transposed": self.places.get((name, True))}
            tensors.append(tensor)
            if name in self.made:
                tensor["made"] = self.made[name]
                continue
            values = self.named[name].detach().numpy()
            half = values.astype("<f2")
            if not np.array_equal(half.astype(np.float32), values):
                raise ValueError(f"{name}: expected numbers that float16 has, got others")
            if found := grid_of(half):
                tensor["grid"] = True
                wholes.append(found[0].ravel())
                exponents.append(found[1])
            else:
                halves.append(half.ravel())
        numbers = np.concatenate(halves)
        planes = numbers.view(np.uint8).reshape(-1, 2).T
        content = b"".join(part.tobytes() for part in (planes, *wholes, *exponents))
        index = {"bytes": self.size, "halves": numbers.size, "tensors": tensors}
        return content, json.dumps(index)


def grid_of(half: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Whole q (rows, columns) with |q| <= 127 and e (rows,), int8, where a float16 matrix is q 2^e; else None.

    All numbers of float16 are multiples of 2^-24, its least subnormal one. The lowest bit that any multiple of a row
    has gives the largest e that fits the row.
    """
    if half.ndim != 2 or not np.isfinite(half).all():
        return None
    multiples = np.ldexp(half.astype(np.float64), 24).astype(np.int64)
    bits = np.bitwise_or.reduce(multiples, axis=1)
    lowest = np.maximum(bits & -bits, 1)
    whole = multiples // lowest[:, None]
    if np.abs(whole).max() > 127:
        return None
    exponents = np.log2(lowest).astype(np.int8) - np.int8(24)
    assert np.array_equal(np.ldexp(whole.astype(np.float64), exponents[:, None]), half)
    return whole.astype(np.int8), exponents


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
    with torch.inference_mode():
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
    with warnings.catch_warnings(action="ignore"):
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


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


def _in_both_cases(pattern: str) -> str:
    def both(found: re.Match[str]) -> str:
        text = found[0]
        if text[0] == "[":
            return re.sub(r"\\p\{\w+\}|\\\w|[a-z]", lambda part: part[0] + part[0].upper() * (len(part[0]) == 1), text)
        return f"[{text}{text.upper()}]" if len(text) == 1 else text

    return re.sub(r"\[[^\]]*\]|\\p\{\w+\}|\\\w|[a-z]", both, pattern)
