"""`import viz_core`: every name there is, and nothing imported before it is used."""

import subprocess
import sys
from importlib import import_module

import pytest

import viz_core

HEAVY = ("torch", "transformers", "huggingface_hub", "numpy", "PIL", "plotly")


def imported(program: str) -> set[str]:
    """Which of the heavy libraries a fresh interpreter has after a program."""
    end = f"\nimport sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", program + end], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_the_library_imports_nothing_else() -> None:
    assert imported("import viz_core; dir(viz_core)") == set()


def test_a_name_brings_what_it_needs() -> None:
    """The app imports the hub; only a model that is asked for brings the heavy libraries."""
    found = imported("import viz_core.hub; from viz_core import load_hub, record")
    assert "torch" in found
    assert not {"transformers", "huggingface_hub"} & found, "imported with the first model"


def test_each_name_is_the_one_of_its_folder() -> None:
    assert set(viz_core.__all__) == set(viz_core._MODULES) <= set(dir(viz_core))
    assert sorted(viz_core.__all__) == viz_core.__all__
    for name, module in viz_core._MODULES.items():
        assert getattr(viz_core, name) is getattr(import_module(module), name)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'attent'; it has attend, "):
        viz_core.attent  # noqa: B018
