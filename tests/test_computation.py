"""Where attention is computed, that modules do not change after they are built, and that tests check shapes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import beartype
import jaxtyping
import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float
from torch import Tensor

from tests import shape_checks
from tests.source_files import ROOT, sources, tree
from viz_core.attention import masked_softmax
from viz_core.trace import attention_weights


def calls_the_kernel(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "scaled_dot_product_attention"


def test_attention_is_computed_in_one_place() -> None:
    users = [
        str(path.relative_to(ROOT))
        for path in sources("viz_core")
        if any(calls_the_kernel(node) for node in ast.walk(tree(path)))
    ]
    assert users == ["viz_core/trace/attend.py"]


# Who may call torch's softmax: the formula itself; what is no attention at all; and lessons on scores that are given.
SOFTMAX = {
    "viz_core/trace/weights.py": "attention_weights, and the softmax of given scores",
    "viz_core/trace/torch_layers.py": "the sites of softmax calls of models that compute their weights themselves",
    "viz_core/lab/heads_off.py": "probabilities of words and labels",
    "viz_core/lab/atom_maps.py": "probabilities of tokens",
    "viz_core/lab/circuits.py": "probabilities of words",
    "viz_core/hub/model.py": "probabilities of words",
    "viz_core/hub/kinds/base.py": "probabilities of labels",
    "viz_core/lab/sinks.py": "probabilities of classes",
    "viz_core/hub/vision.py": "probabilities of classes",
    "viz_core/pretrained/classifier.py": "probabilities of classes",
    "viz_core/lessons/transformer/decoding.py": "probabilities of words",
    "viz_core/lab/two_sentences.py": "probabilities of words",
    "viz_core/lab/walk_records.py": "probabilities of words",
    "viz_core/lessons/bahdanau.py": "probabilities of words; the additive formula, pair by pair",
    "viz_core/lessons/attention_pooling.py": "kernel weights that lack the term of the key",
    "viz_core/lessons/multi_head.py": "scores over the wrong root, and heads that take every h-th column",
    "viz_core/lessons/scoring_functions/mask_variants.py": "other ways to mask, some wrong; a missing root",
    "viz_core/lessons/scoring_functions/scaling.py": "random scores without queries and keys",
}


def calls_softmax(path: Path) -> bool:
    names = {"softmax", "Softmax"}
    return any(isinstance(node, ast.Attribute) and node.attr in names for node in ast.walk(tree(path)))


def test_one_way_from_queries_and_keys_to_weights() -> None:
    files = (path for folder in ("viz_core", "serving") for path in sources(folder))
    users = {str(path.relative_to(ROOT)) for path in files if calls_softmax(path)}
    assert users == set(SOFTMAX)


# Modules assign nothing to self outside __init__


def module_classes() -> dict[str, tuple[Path, ast.ClassDef]]:
    """Every class of the library that is an nn.Module, straight or through another class of the library."""
    classes = {
        node.name: (path, node)
        for path in sources("viz_core")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
    }
    found: dict[str, tuple[Path, ast.ClassDef]] = {}
    while True:
        more = {
            name: place
            for name, place in classes.items()
            if name not in found
            and any(ast.unparse(base).split(".")[-1] in {"Module", *found} for base in place[1].bases)
        }
        if not more:
            return found
        found |= more


def assignments_to_self(node: ast.AST) -> Iterator[str]:
    """What is assigned, deleted or registered on self, or within something that self holds."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute | ast.Subscript) and not isinstance(inner.ctx, ast.Load):
            if belongs_to_self(inner):
                yield ast.unparse(inner)
        elif isinstance(inner, ast.Call):
            called, first = ast.unparse(inner.func), ast.unparse(inner.args[0]) if inner.args else ""
            changes = {"self.register_buffer", "self.register_parameter", "self.add_module", "self.__setattr__"}
            if called in changes or (called in {"setattr", "object.__setattr__", "delattr"} and first == "self"):
                yield ast.unparse(inner)


def belongs_to_self(place: ast.Attribute | ast.Subscript) -> bool:
    inner: ast.expr = place
    while isinstance(inner, ast.Attribute | ast.Subscript):
        inner = inner.value
    return isinstance(inner, ast.Name) and inner.id == "self"


def test_no_module_changes_itself_after_init() -> None:
    classes = module_classes()
    assert {"MultiHeadAttention", "TransformerDecoder", "PositionalEncoding"} <= classes.keys()
    found = [
        f"{path.relative_to(ROOT)}: {name}.{method.name}: {change}"
        for name, (path, node) in classes.items()
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name != "__init__"
        for change in assignments_to_self(method)
    ]
    assert found == []


TORCH_TYPES = {"device", "dtype", "float16", "bfloat16", "float32", "float64", "float", "bool", "long", "nn"}
CONVERSIONS = {"torch.tensor", "torch.from_numpy"}


def test_pages_call_no_function_of_torch() -> None:
    """A page requests and never computes; its gallery picture is drawn beforehand, by `python -m pages.home.draw`."""
    found = {
        str(path.relative_to(ROOT))
        for path in sources("pages")
        for part in tree(path).body
        if not (isinstance(part, ast.FunctionDef) and part.name == "gallery_picture")
        for node in ast.walk(part)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if f"{node.value.id}.{node.attr}" not in CONVERSIONS
        if node.value.id in {"torch", "F"} and node.attr[:1].islower() and node.attr not in TORCH_TYPES
    }
    assert found == set()


ROWS, COLUMNS = torch.zeros(2, 3), torch.zeros(3, 2)


@shape_checks.jaxtyped(typechecker=beartype.beartype)
def first_of(one: Float[Tensor, "rows columns"], other: Float[Tensor, "rows columns"]) -> Float[Tensor, " rows"]:
    return one[:, 0] if one.any() else one[0]


def test_sizes_of_one_name_are_the_same() -> None:
    assert first_of(ROWS + 1, ROWS).shape == (2,)
    for wrong in (COLUMNS, "text", ROWS):  # of these, three columns are not two rows
        with pytest.raises(BeartypeCallHintViolation):
            first_of(ROWS, wrong)


def test_the_library_is_checked_at_every_door() -> None:
    with pytest.raises(TypeError):
        masked_softmax(ROWS)  # scores have three dimensions
    with pytest.raises(TypeError):
        attention_weights("queries", ROWS)
    assert not jaxtyping.config.jaxtyping_disable
