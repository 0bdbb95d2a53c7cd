"""Parse typed or pasted rows of numbers into a tensor, or raise an error that names the reason."""

from __future__ import annotations

import math
import re

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ui.text.numbers import half_width

_LARGEST = float(np.finfo(np.float32).max)


class TypedNumbersError(ValueError):
    """Why a text could not be parsed, by name, so that a page can translate it.

    Attributes:
        reason: "empty", "not-a-number", "too-large", "ragged", "uneven" or "too-many".
        values: of the message: the cell, its row, the counts found and expected.
    """

    def __init__(self, reason: str, message: str, **values: object) -> None:
        super().__init__(message)
        self.reason = reason
        self.values = values


def read_batches(
    text: str, max_batches: int = 4, max_rows: int = 8, max_columns: int = 12
) -> Float[Tensor, "batch rows columns"]:
    """A batch of matrices: a line is a row, an empty line begins the next batch row.

    Numbers are separated by spaces, commas or semicolons, in full width too. Arrays as torch or numpy print them, with
    brackets, are read too. Between numbers with spaces or semicolons, "0,5" is one half. Rows are counted from 1 over
    the whole text, batch rows from 1.
    """
    text = half_width(text)
    text = _with_decimal_points(_without_brackets(text)) if "[" not in text else _without_brackets(text)
    lines = [[_cells(line) for line in block.splitlines()] for block in re.split(r"\n\s*\n", text)]
    blocks = [[cells for cells in block if cells] for block in lines if any(block)]
    if not blocks:
        raise TypedNumbersError("empty", "expected at least one number, got none")
    if len(blocks) > max_batches:
        raise _too_many("batches", len(blocks), max_batches)
    batches: list[list[list[float]]] = []
    row = 0
    for block in blocks:
        batches.append([])
        for cells in block:
            row += 1
            numbers = [_number(cell, row) for cell in cells]
            if len(numbers) > max_columns:
                raise _too_many("columns", len(numbers), max_columns)
            batches[-1].append(numbers)
            wanted = len(batches[0][0])
            if len(numbers) != wanted:
                message = f"row {row}: expected {wanted} numbers as in row 1, got {len(numbers)}"
                raise TypedNumbersError("ragged", message, row=row, found=len(numbers), expected=wanted)
        found, expected = len(batches[-1]), len(batches[0])
        if found > max_rows:
            raise _too_many("rows", found, max_rows)
        if found != expected:
            message = f"batch row {len(batches)}: expected {expected} rows as in batch row 1, got {found}"
            raise TypedNumbersError("uneven", message, batch=len(batches), found=found, expected=expected)
    return torch.tensor(batches)


def _without_brackets(text: str) -> str:
    """Lines and empty lines for the brackets of nested lists; text without brackets stays as it is."""
    text = text.replace("\r\n", "\n")
    if "[" not in text:
        return text
    inside = text[text.index("[") : text.rindex("]") + 1] if "]" in text else text[text.index("[") :]
    flat = " ".join(inside.split())
    flat = re.sub(r"\]\s*\][\s,]*", "\n\n", flat)
    return re.sub(r"\][\s,]*", "\n", flat).replace("[", " ")


def _with_decimal_points(text: str) -> str:
    """Decimal commas as points, if no comma separates: each is inside a number, and spaces or semicolons part them."""
    cells = re.split(r"[\s;]+", text.strip())
    separated = any(len(re.split(r"[\s;]+", line.strip())) > 1 for line in text.splitlines())
    decimal = separated and "." not in text and all(re.fullmatch(r"[^,]+|[-−+]?\d+,\d+\S*", cell) for cell in cells)
    return text.replace(",", ".") if decimal else text


def _cells(line: str) -> list[str]:
    return [cell for cell in re.split(r"[\s,;]+", line.strip()) if cell]


def _number(cell: str, row: int) -> float:
    try:
        value = float(cell.replace("−", "-"))  # a minus sign as it is printed
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise TypedNumbersError("not-a-number", f"row {row}: expected a number, got {cell!r}", row=row, cell=cell)
    if abs(value) > _LARGEST:
        message = f"row {row}: expected numbers up to {_LARGEST:.2g}, got {cell}"
        raise TypedNumbersError("too-large", message, row=row, cell=cell)
    return value


def _too_many(what: str, found: int, most: int) -> TypedNumbersError:
    message = f"expected at most {most} {what}, got {found}"
    return TypedNumbersError("too-many", message, what=what, found=found, most=most)


def read_lengths(text: str, batch: int, num_queries: int, num_keys: int) -> Int[Tensor, "..."] | None:
    """Valid lengths: one for each batch row, or one for each query; no number at all means no mask.

    Their count says which: `batch` of them make (batch,), `batch * num_queries` make (batch, num_queries).
    """
    cells = [cell for cell in re.split(r"[\s,;()\[\]]+", half_width(text)) if cell and cell != "tensor"]
    lengths = []
    for cell in cells:
        if not re.fullmatch(r"[-−+]?\d{1,9}(\.0*)?", cell):
            raise TypedNumbersError("no-length", f"expected a whole number, got {cell!r}", cell=cell, most=num_keys)
        lengths.append(int(float(cell.replace("−", "-"))))
        if not 0 <= lengths[-1] <= num_keys:
            raise TypedNumbersError("length", f"expected 0 to {num_keys}, got {cell}", cell=cell, most=num_keys)
    if not lengths:
        return None
    if len(lengths) == batch:
        return torch.tensor(lengths)
    if len(lengths) == batch * num_queries:
        return torch.tensor(lengths).reshape(batch, num_queries)
    message = f"expected {batch} or {batch * num_queries} lengths, got {len(lengths)}"
    raise TypedNumbersError("count", message, found=len(lengths), rows=batch, queries=batch * num_queries)
