"""Files of models: ONNX graphs whose weights lie in one file beside them, and tokenizers as JSON for the scripts."""

from __future__ import annotations

import json
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from onnx.external_data_helper import set_external_data
from tokenizers import Tokenizer
from torch import nn

WEIGHTS = "weights"
"""The name under which graphs refer to the file of their weights."""

SHARED_FROM = 256
"""Tensors of fewer numbers stay in their graph."""


@dataclass
class WeightStore:
    """The file of a model's weights, each tensor once, and what computes them from it when a session starts.

    Numbers lie in float16, matrices on a grid in 8 bits with a power of 2 for each row.
    """

    content: bytearray = field(default_factory=bytearray)
    places: dict[bytes, int] = field(default_factory=dict)

    def unpacked(self, name: str, values: np.ndarray) -> Iterator[onnx.TensorProto | onnx.NodeProto]:
        """Add a tensor to the file; the initializers and nodes that give it under its name.

        ValueError if it has numbers that float16 does not.
        """
        half = values.astype("<f2")
        if not np.array_equal(half.astype(np.float32), values):
            raise ValueError(f"{name}: expected numbers that float16 has, got others")
        parts: tuple[np.ndarray, ...] | None
        if parts := grid_of(half):
            operation = "Mul"
        elif grid_of(half.T):
            yield from self.unpacked(f"{name}.T", values.T)
            yield helper.make_node("Transpose", [f"{name}.T"], [name])
            return
        else:
            parts, operation = (half,), "Identity"
        for i, part in enumerate(parts):
            data = part.tobytes()
            tensor = numpy_helper.from_array(part, f"{name}.{i}.packed")
            if data not in self.places:
                self.places[data] = len(self.content)
                self.content += data
            set_external_data(tensor, WEIGHTS, self.places[data], len(data))
            tensor.ClearField("raw_data")
            yield tensor
            yield helper.make_node("Cast", [tensor.name], [f"{name}.{i}"], to=onnx.TensorProto.FLOAT)
        yield helper.make_node(operation, [f"{name}.{i}" for i in range(len(parts))], [name])


def grid_of(half: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Whole q (rows, columns) with |q| <= 127, int8, and 2^e (rows, 1), where a float16 matrix is q 2^e; else None.

    All numbers of float16 are multiples of 2^-24, its least subnormal one. The lowest bit that any multiple of a row
    has gives the largest e that fits the row.
    """
    if half.ndim != 2 or not np.isfinite(half).all():
        return None
    multiples = np.ldexp(half.astype(np.float64), 24).astype(np.int64)
    bits = np.bitwise_or.reduce(multiples, axis=1, keepdims=True)
    lowest = np.maximum(bits & -bits, 1)
    whole = multiples // lowest
    if np.abs(whole).max() > 127:
        return None
    return whole.astype(np.int8), np.ldexp(lowest.astype(np.float64), -24).astype("<f2")


def export_graph(
    module: nn.Module,
    inputs: tuple[Any, ...],
    dynamic_shapes: tuple[Any, ...],
    names: Sequence[str],
    store: WeightStore,
) -> bytes:
    """Return an ONNX graph of a module that returns its outputs by name; large tensors lie in `store`.

    Args:
        dynamic_shapes: of `inputs`, which have `names`, as `torch.export` takes them.
    """
    with torch.inference_mode():
        output_names = list(module.eval()(*inputs))
    with warnings.catch_warnings(action="ignore"):
        logging.disable(logging.WARNING)  # what the exporter reports of libraries that are not needed
        try:
            program = torch.onnx.export(
                module,
                inputs,
                dynamic_shapes=dynamic_shapes,
                input_names=names,
                output_names=output_names,
                external_data=False,
                verbose=False,
            )
        finally:
            logging.disable(logging.NOTSET)
    assert program is not None
    return with_shared_weights(program.model_proto, store).SerializeToString(deterministic=True)


def with_shared_weights(model: onnx.ModelProto, store: WeightStore) -> onnx.ModelProto:
    """Move a model's large tensors to `store`, and what only says where it was made out of it."""
    graph = model.graph
    nodes = list(graph.node)
    del graph.node[:]
    weights = [each for each in graph.initializer if each.data_type == each.FLOAT and np.prod(each.dims) >= SHARED_FROM]
    for tensor in weights:
        graph.initializer.remove(tensor)
        for part in store.unpacked(tensor.name, numpy_helper.to_array(tensor)):
            (graph.initializer if isinstance(part, onnx.TensorProto) else graph.node).append(part)
    graph.node.extend(nodes)
    for described in (model, graph, *graph.node, *graph.input, *graph.output, *model.functions):
        described.doc_string = ""
        del described.metadata_props[:]
    del graph.value_info[:]
    return model


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
