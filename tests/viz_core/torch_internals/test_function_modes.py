"""What other libraries put in place of `has_torch_function` stays theirs, and torch's own comes back."""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from viz_core.trace import record


@pytest.fixture(autouse=True)
def torch_has_its_own_again() -> Iterator[None]:
    own = torch.overrides.has_torch_function
    yield
    torch.overrides.has_torch_function = own


def counting(inner: Callable[[Iterable[Any]], bool]) -> Any:
    def patched(tensors: Iterable[Any]) -> bool:
        patched.calls += 1
        return inner(tensors)

    patched.calls = 0
    return patched


def test_a_patch_made_within_a_block_stays_and_works() -> None:
    with record(torch_calls=True):
        theirs = torch.overrides.has_torch_function = counting(torch.overrides.has_torch_function)
    assert torch.overrides.has_torch_function is theirs
    assert not torch.overrides.has_torch_function([torch.ones(1)])
    assert theirs.calls == 1
    with record(torch_calls=True):
        assert not torch.overrides.has_torch_function([torch.ones(1)])
    assert theirs.calls == 2
    assert torch.overrides.has_torch_function is theirs


def test_a_patch_made_before_a_block_is_used_and_comes_back() -> None:
    theirs = torch.overrides.has_torch_function = counting(torch.overrides.has_torch_function)
    with record(torch_calls=True):
        torch.overrides.has_torch_function([torch.ones(1)])
    assert theirs.calls == 1
    assert torch.overrides.has_torch_function is theirs


def test_what_a_patch_restores_after_our_block_is_removed_by_the_next_one() -> None:
    own = torch.overrides.has_torch_function
    with record(torch_calls=True):
        before = torch.overrides.has_torch_function
        torch.overrides.has_torch_function = counting(before)
    torch.overrides.has_torch_function = before
    assert not torch.overrides.has_torch_function([torch.ones(1)])
    with record(torch_calls=True):
        pass
    assert torch.overrides.has_torch_function is own


def test_the_last_of_several_threads_restores_it() -> None:
    own = torch.overrides.has_torch_function
    layer, X = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).eval(), torch.randn(1, 3, 8)
    entered, leave = threading.Barrier(4), threading.Event()
    lengths = []

    def work() -> None:
        with torch.no_grad(), record(torch_calls=layer) as trace:
            entered.wait(60)
            layer(X)
            leave.wait(60)
        lengths.append(len(trace))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    entered.wait(60)
    with record(torch_calls=True):
        pass
    assert torch.overrides.has_torch_function is not own
    leave.set()
    for thread in threads:
        thread.join()
    assert lengths == [1, 1, 1]
    assert torch.overrides.has_torch_function is own
