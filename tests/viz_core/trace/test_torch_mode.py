"""Recording plain PyTorch: for one block, one thread or task, beside the modes of other libraries."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode, _get_current_function_mode

from tests.viz_core.trace.test_torch_models import encoder
from viz_core.trace import no_recording, record

D, HEADS = 16, 4


def call(axis: int = 2) -> Tensor:
    X = torch.ones(1, 1, axis, 4)
    return F.scaled_dot_product_attention(X, X, X)


def assert_nothing_is_left() -> None:
    assert _get_current_function_mode() is None
    assert torch.overrides.has_torch_function is torch._C._has_torch_function


def test_blocks_within_blocks() -> None:
    with record(torch_calls=True) as outer:
        call()
        with record(torch_calls=True) as inner:
            call()
            with record() as deaf:
                call()
        with no_recording():
            call()
        with outer.adopt():
            call()
    assert (len(outer), len(inner), len(deaf)) == (2, 1, 0)
    call()
    assert len(outer) == 2
    assert_nothing_is_left()


def test_an_error_leaves_nothing_behind() -> None:
    with contextlib.suppress(ZeroDivisionError), record(torch_calls=True) as trace:
        call()
        with pytest.raises(RuntimeError):
            F.scaled_dot_product_attention(torch.ones(2, 3), torch.ones(2, 4), torch.ones(2, 3))
        call()
        raise ZeroDivisionError
    assert trace.sites == ("attention.0", "attention.1")
    assert_nothing_is_left()


def test_other_threads_neither_hear_nor_are_heard() -> None:
    """One thread records; seven run the same model, on its fast path, and get what they always get."""
    model = encoder().eval()
    inputs = [torch.randn(1, 3 + i, D) for i in range(8)]
    with torch.no_grad():
        expected = [model(X) for X in inputs]
    start = threading.Barrier(8)

    def run(number: int) -> tuple[bool, int]:
        with torch.no_grad(), record(torch_calls=number == 0) as trace:
            with no_recording():
                model(inputs[number])  # torch rounds the first call of a new thread otherwise: it has more threads
            start.wait()
            same = all(torch.equal(model(inputs[number]), expected[number]) for _ in range(30))
            assert (_get_current_function_mode() is None) is (number != 0)
        return same, len(trace)

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(run, range(8)))
    assert results == [(True, 90), *7 * [(True, 0)]]
    assert_nothing_is_left()


def test_a_thread_may_adopt_the_trace() -> None:
    with record(torch_calls=True) as trace:

        def work() -> None:
            call()
            with trace.adopt():
                call(3)
            call()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [each.num_keys for each in trace] == [3]
    assert_nothing_is_left()


def test_tasks_of_one_thread_do_not_hear_each_other() -> None:
    async def visitor(number: int) -> list[int]:
        with record(torch_calls=number < 3) as trace:
            for _ in range(number):
                call(number)
                await asyncio.sleep(0)
        return [each.num_keys for each in trace]

    async def together() -> list[list[int]]:
        return await asyncio.gather(*(visitor(number) for number in (1, 2, 3)))

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(lambda: asyncio.run(together())).result() == [[1], [2, 2], []]
    assert_nothing_is_left()


def test_modes_of_others_go_on() -> None:
    """A mode around or within ours sees every call once, and closes torch's fast path as it always does."""

    class Counting(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[Any] = []

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen.append(func)
            return func(*args, **(kwargs or {}))

    model, X = encoder().eval(), torch.randn(1, 3, D)
    with torch.no_grad():
        for around in (True, False):
            with Counting() as others:
                alone = model(X)
            calls = others.seen.copy()
            others.seen.clear()
            first, second = (others, record(torch_calls=True)) if around else (record(torch_calls=True), others)
            with first, second:
                together = model(X)
            assert torch.equal(alone, together)
            assert others.seen == calls
            assert torch._transformer_encoder_layer_fwd not in calls
