"""Torch's private names: the self-test, and what other libraries put in their place."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.attention.bias
from torch import nn

from viz_core import torch_internals
from viz_core.torch_internals import missing, private
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


def test_this_version_of_torch_has_every_name() -> None:
    assert len(torch_internals._NAMES) > 8
    assert all(map(torch_internals._is_loaded, torch_internals._NAMES.values()))
    assert missing() == []


def test_a_missing_name_is_reported_once_with_what_no_longer_works(monkeypatch: pytest.MonkeyPatch) -> None:
    name = torch_internals._NAMES["torch.overrides:_pop_mode"]
    monkeypatch.delattr(torch.overrides, "_pop_mode")
    assert missing() == [name]
    torch_internals.warn_missing.cache_clear()
    with pytest.warns(RuntimeWarning, match=f"has no torch.overrides._pop_mode, so {name.without[:9]}"):
        torch_internals.warn_missing()
    torch_internals.warn_missing()


def test_a_stand_in_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_internals, "_NAMES", {})
    with pytest.raises(RuntimeError, match=r"has no torch\.overrides\._gone, so recording does not work"):
        private("torch.overrides:_gone", "recording")()
    assert private("torch.overrides:_gone", "recording", default=int)() == 0
    assert private("torch:Tensor", "recording") is torch.Tensor


def test_a_recording_works_and_warns_without_the_names_it_can_do_without() -> None:
    program = (
        "import warnings, torch\n"
        "del torch._C._functorch.is_functorch_wrapped_tensor, torch._C._current_graph_task_id\n"
        "warnings.simplefilter('always')\n"
        "from viz_core.trace import attend, record\n"
        "with record() as trace: attend(*[torch.ones(1, 1, 2, 4)] * 3)\n"
        "print(trace.sites)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "('attention.0',)", run.stderr
    assert "has no torch._C._functorch.is_functorch_wrapped_tensor, so refusing torch.func" in run.stderr
    assert "has no torch._C._current_graph_task_id, so" in run.stderr
