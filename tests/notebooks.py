"""Notebooks, run by a kernel as JupyterLab's are."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

ROOT = Path(__file__).resolve().parents[1]
_SETTING = f"import sys; sys.path.insert(0, {str(ROOT)!r})"  # a kernel starts in a folder of its own


def run_notebook(book: nbformat.NotebookNode, folder: Path, *more: str) -> list[list[nbformat.NotebookNode]]:
    """What each code cell puts out, and then each of some more; a cell that fails is an error.

    Args:
        book: run from top to bottom, as it is.
        folder: where it lies.
        more: code of cells added to its end.
    """
    nbformat.validate(book)
    cells = [new_code_cell(_SETTING), *book.cells, *map(new_code_cell, more)]
    whole = new_notebook(cells=cells, metadata=book.metadata)
    NotebookClient(whole, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return [cell.outputs for cell in whole.cells[1:] if cell.cell_type == "code"]


def printed(outputs: list[nbformat.NotebookNode]) -> str:
    """What a cell prints."""
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")


def shows(outputs: list[nbformat.NotebookNode]) -> set[str]:
    """The kinds of what a cell shows, such as "text/html"."""
    return {kind for output in outputs for kind in output.get("data", {})}
