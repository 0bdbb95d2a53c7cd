"""The self-test of torch's private names: nothing is missing here, and what is missing elsewhere is named."""

import subprocess
import sys

import pytest
import torch
import torch.nn.attention.bias

from viz_core.torch_internals import register
from viz_core.torch_internals.register import missing, private


def test_this_version_of_torch_has_every_name() -> None:
    assert len(register._NAMES) > 8
    assert all(map(register._is_loaded, register._NAMES.values()))
    assert missing() == []


def test_a_missing_name_is_reported_once_with_what_no_longer_works(monkeypatch: pytest.MonkeyPatch) -> None:
    name = register._NAMES["torch.overrides:_pop_mode"]
    monkeypatch.delattr(torch.overrides, "_pop_mode")
    assert missing() == [name]
    register.warn_missing.cache_clear()
    with pytest.warns(RuntimeWarning, match=f"has no torch.overrides._pop_mode, so {name.without[:9]}"):
        register.warn_missing()
    register.warn_missing()


def test_a_stand_in_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register, "_NAMES", {})
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
