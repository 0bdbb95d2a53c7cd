"""Rows of the table of kernels in docs/conventions.md, for libraries named; written into the page at PAGE, if set."""

import datetime
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from viz_core import view

os.environ["KERAS_BACKEND"] = "jax"
_rng = np.random.default_rng(0)
QUERIES, KEYS = 2, 5
ALLOWED = np.ones((QUERIES, KEYS), bool)
ALLOWED[1] = False
ADDED = np.where(ALLOWED, 0, -np.inf).astype(np.float32)

Weights = Callable[..., Any]  # of queries and keys (n, 8), mask or None, and whether causal: an array (queries, keys)


def torch_kernels() -> Iterator[tuple[str, Weights, tuple[np.ndarray | None, ...]]]:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    version = torch.__version__.partition("+")[0]

    def scaled(backend, q, k, mask, causal):
        tensors = [torch.tensor(each)[None, None] for each in (q, k, np.eye(KEYS, 8, dtype=np.float32))]
        given = None if mask is None else torch.tensor(mask)
        with sdpa_kernel(backend):
            out = torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=given, is_causal=causal)
        return out[0, 0, :, :KEYS]

    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        yield f"torch {version}, {backend.name}", lambda *given, b=backend: scaled(b, *given), (ALLOWED, ADDED)

    def flexible(q, k, mask, causal):
        tensors = [torch.tensor(each)[None, None] for each in (q, k, np.eye(KEYS, 8, dtype=np.float32))]
        allowed = None if mask is None else torch.tensor(mask)
        rule = (lambda _b, _h, i, j: i >= j) if causal else lambda _b, _h, i, j: allowed[i, j]
        block = create_block_mask(rule, 1, 1, QUERIES, KEYS, device="cpu")
        return flex_attention(*tensors, block_mask=block)[0, 0, :, :KEYS]

    yield f"torch {version}, flex_attention", flexible, (ALLOWED, None)

    def layer(q, k, mask, causal):
        attention = torch.nn.MultiheadAttention(8, 1, batch_first=True).eval()
        given = torch.ones(QUERIES, KEYS, dtype=torch.bool).triu(1) if causal else torch.tensor(mask)
        given = ~given if not causal and given.dtype == torch.bool else given
        with torch.no_grad():
            return attention(torch.tensor(q)[None], *[torch.tensor(k)[None]] * 2, attn_mask=given)[1][0]

    yield f"torch {version}, nn.MultiheadAttention (its weights)", layer, (ALLOWED, ADDED)


def onnx_runtimes() -> Iterator[tuple[str, Weights, tuple[np.ndarray | None, ...]]]:
    import onnx
    import onnxruntime
    from onnx_attention import model, reference, runtime

    def weights(engine, q, k, mask, causal):
        name = () if mask is None else ("allowed",) if mask.dtype == bool else ("added",)
        feeds = dict(
            zip(("Q", "K", "V"), (each[None, None] for each in (q, k, np.eye(KEYS, 8, dtype=np.float32))), strict=True)
        )
        proto = model(24, ("Q", "K", "V", *name), is_causal=int(causal))
        return engine(proto, feeds | dict.fromkeys(name, mask))[0][0, 0, :, :KEYS]

    for title, engine in (
        (f"ONNX reference {onnx.__version__}", reference),
        (f"onnxruntime {onnxruntime.__version__}", runtime),
    ):
        yield title + ", Attention", lambda *given, e=engine: weights(e, *given), (ALLOWED, ADDED)


def jax_and_keras() -> Iterator[tuple[str, Weights, tuple[np.ndarray | None, ...]]]:
    import jax
    import keras

    values = np.eye(KEYS, 8, dtype=np.float32)[None, :, None]

    def by_jax(q, k, mask, causal):
        kind = {"bias": mask[None, None]} if mask is not None and mask.dtype != bool else {}
        if mask is not None and not kind:
            kind = {"mask": mask[None, None]}
        out = jax.nn.dot_product_attention(q[None, :, None], k[None, :, None], values, is_causal=causal, **kind)
        return out[0, :, 0, :KEYS]

    yield f"jax {jax.__version__}, jax.nn.dot_product_attention", by_jax, (ALLOWED, ADDED)

    def by_keras(q, k, mask, causal):
        layer = keras.layers.MultiHeadAttention(1, 8)
        options = {"use_causal_mask": True} if causal else {"attention_mask": mask[None]}
        return layer(q[None], k[None], return_attention_scores=True, **options)[1][0, 0]

    yield f"keras {keras.__version__}, MultiHeadAttention (its scores)", by_keras, (ALLOWED, None)

    def by_attention(q, k, mask, causal):
        layer = keras.layers.Attention()
        hidden = [None, np.asarray(ALLOWED[1])[None]] if mask is not None else None
        out = layer([q[None], k[None]], mask=hidden, return_attention_scores=True, use_causal_mask=causal)
        return out[1][0]

    yield f"keras {keras.__version__}, Attention (its scores)", by_attention, (ALLOWED, None)


def mlx_kernels() -> Iterator[tuple[str, Weights, tuple[np.ndarray | None, ...]]]:
    import mlx.core as mx

    def weights(q, k, mask, causal):
        tensors = [mx.array(each[None, None]) for each in (q, k, np.eye(KEYS, 8, dtype=np.float32))]
        given = "causal" if causal else mx.array(mask)
        return mx.fast.scaled_dot_product_attention(*tensors, scale=8**-0.5, mask=given)[0, 0, :, :KEYS]

    yield f"mlx {mx.__version__}, mx.fast.scaled_dot_product_attention", weights, (ALLOWED, ADDED)


LIBRARIES = {"torch": torch_kernels, "onnx": onnx_runtimes, "jax": jax_and_keras, "mlx": mlx_kernels}


def corner(weights: np.ndarray) -> str:
    """Say which keys the two queries see."""
    seen = [(row > 0).nonzero()[0].tolist() for row in weights]
    names = {((0,), (0, 1)): "upper left", ((0, 1, 2, 3), (0, 1, 2, 3, 4)): "lower right"}
    return names.get(tuple(map(tuple, seen)), f"keys {seen}")


def empty(row: np.ndarray) -> str:
    """Say what a row that may see nothing holds."""
    if np.isnan(row).all():
        return "NaN"
    return "zeros" if not row.any() else "mean of all keys" if np.allclose(row, 1 / KEYS) else f"{row.round(2)}"


def attempt(weights: Weights, say: Callable[[np.ndarray], str], *given: object) -> tuple[str, str]:
    """Say what a call gives, or that it raises; and what this product's `view` makes of the library's own array."""
    queries, keys = (_rng.normal(size=(n, 8)).astype(np.float32) for n in (QUERIES, KEYS))
    try:
        found = weights(queries, keys, *given)
    except Exception as error:
        return f"refused ({type(error).__name__})", ""
    array = np.asarray(found)
    try:
        shown = view(found).groups[0].calls[0].weights()[0, 0].numpy()
    except ValueError:
        return say(array), "refused"
    if np.array_equal(shown, array):
        return say(array), "as given"
    return say(array), "NaN as zeros" if np.array_equal(shown, np.nan_to_num(array)) else "changed"


def rows(name: str) -> Iterator[str]:
    """Yield the rows of a library."""
    for title, weights, masks in LIBRARIES[name]():
        tried = (
            ("", "") if mask is None else attempt(weights, lambda each: empty(each[1]), mask, False) for mask in masks
        )
        found, imported = zip(attempt(weights, corner, None, True), *tried, strict=True)
        cells = [title, *found, ", ".join(dict.fromkeys(filter(None, imported)))]
        yield "| " + " | ".join(cells) + " |\n"


table = "".join(row for name in sys.argv[1:] or LIBRARIES for row in rows(name))
print(table, end="")
if os.environ.get("PAGE"):
    with open(os.environ["PAGE"], encoding="utf-8") as page:
        text = page.read()
    head, rest = re.split(r"(?<=\| --- \| --- \| --- \| --- \| --- \|\n)(?:\| .*\n)+", text, maxsplit=1)
    head = re.sub(r"Kernels run \S+", f"Kernels run {datetime.date.today()}", head)
    with open(os.environ["PAGE"], "w", encoding="utf-8") as page:
        page.write(head + table + rest)
