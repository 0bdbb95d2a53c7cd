"""Names that torch, Streamlit and uvicorn do not document are used in one folder for each library."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.source_files import PACKAGES, ROOT, imports, sources, tree


def test_private_names_of_torch_are_touched_in_one_folder() -> None:
    users = [
        f"{path.relative_to(ROOT)}: {match}"
        for folder in PACKAGES
        for path in sources(folder)
        if "torch_internals" not in path.parts
        for match in re.findall(
            r"\btorch(?:\.\w+)*\._\w+|from torch(?:\.\w+)* import [^#\n]*\b_\w+", path.read_text("utf-8")
        )
    ]
    assert users == []


PUBLIC = (
    "streamlit",
    "streamlit.config",
    "streamlit.delta_generator",
    "streamlit.delta_generator.DeltaGenerator",
)
INTERNALS = {"streamlit": "ui/streamlit_internals", "uvicorn": "serving/uvicorn_internals"}


def app_sources() -> list[Path]:
    return [ROOT / "app.py", ROOT / "hosted.py", *(path for folder in PACKAGES for path in sources(folder))]


@pytest.mark.parametrize("library", INTERNALS)
def test_modules_that_a_library_does_not_document_are_imported_in_one_folder(library: str) -> None:
    used = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in app_sources()
        if not path.is_relative_to(ROOT / INTERNALS[library])
        for name in imports(path)
        if name.split(".")[0] == library and name not in PUBLIC
    ]
    assert used == []


def test_private_attributes_of_streamlit_and_uvicorn_are_touched_in_their_folders() -> None:
    """An attribute with an underscore is ours if some module of ours has it."""
    ours, used = {"_asdict", "_exit"}, set()  # of named tuples; of os
    for path in app_sources():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                ours.add(node.name)
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                ours.add(node.id if isinstance(node, ast.Name) else node.attr)
            elif isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
                used.add((path.relative_to(ROOT), node.attr))
    folders = ("viz_core", "recipes", *INTERNALS.values())  # the first two touch torch and transformers
    others = {(path, name) for path, name in used if not any(path.is_relative_to(each) for each in folders)}
    assert {(path, name) for path, name in others if name not in ours} == set()
