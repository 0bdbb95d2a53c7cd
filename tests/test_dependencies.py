"""What pyproject.toml says an installation needs, and the command that it brings."""

import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from safetensors.torch import load_file

from attention_atlas.__main__ import lab_address, main
from tests.ranges import VERSIONS, allowed
from tests.source_files import ROOT, imports
from viz_core import torch_internals

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OWN = {"viz_core", "attention_atlas", "serving", "ui", "pages"}
IN_A_NOTEBOOK = {
    "viz_core/view/widget.py",
    "viz_core/view/matplotlib_figure.py",
}  # imported where the extra is installed
FOR_THE_HUB = {"recipes/text_models.py", "recipes/text_rows.py"}  # models of its kind
BROUGHT_ALONG = {"app": {"starlette", "anyio", "uvicorn", "protobuf"}, "serve": {"starlette", "anyio"}}  # by streamlit


def requirements(extra: str | None) -> list[Requirement]:
    """What an installation with this extra asks for, extras of its own included."""
    wanted = [Requirement(line) for line in PROJECT["dependencies"]]
    for line in PROJECT["optional-dependencies"].get(extra, []) if extra else []:
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            wanted += [each for inner in requirement.extras for each in requirements(inner)]
        else:
            wanted.append(requirement)
    return wanted


def third_party(path: Path) -> set[str]:
    """Libraries that a file imports, at the top or within a function."""
    return {name.split(".")[0] for name in imports(path)} - OWN - set(sys.stdlib_module_names)


def extra_of(path: Path) -> str | None:
    """The extra that a file of the house comes to life with; None for the library by itself."""
    parts = path.relative_to(ROOT).parts
    if "/".join(parts) in IN_A_NOTEBOOK:
        return "notebook"
    if "/".join(parts) in FOR_THE_HUB:
        return "hub"
    if "/".join(parts) == "viz_core/pretrained/bleu.py":
        return "bleu"
    if "/".join(parts) == "viz_core/lab/fields/molecules.py":
        return "chemistry"
    if parts[0] == "viz_core":
        return {"hub": "hub", "lab": "hub", "sounds": "hub"}.get(parts[1])
    return "serve" if path.name == "ray_serve.py" else "app"


@pytest.mark.parametrize("extra", [None, *PROJECT["optional-dependencies"]])
def test_an_installation_has_what_its_part_of_the_house_imports(extra: str | None) -> None:
    files = [path for folder in OWN for path in (ROOT / folder).rglob("*.py") if extra_of(path) == extra]
    assert files
    named = {canonicalize_name(each.name) for each in requirements(extra)}
    homes = packages_distributions()
    # pydantic-settings brings pydantic; what is not installed here goes by the name it is imported by
    given = named | BROUGHT_ALONG.get(extra or "", set()) | ({"pydantic"} if "pydantic-settings" in named else set())
    missing = {
        (str(path.relative_to(ROOT)), library)
        for path in files
        for library in third_party(path)
        if not {canonicalize_name(home) for home in homes.get(library, [library])} & given
    }
    assert missing == set()


def test_what_is_tested_lies_within_the_ranges() -> None:
    pins = {
        canonicalize_name(pin.name): next(iter(pin.specifier)).version
        for file in ("requirements.txt", "requirements-serve.txt", "requirements-dev.txt")
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines()
        if "==" in line and (pin := Requirement(line.split("#")[0].strip()))
    }
    ranges = [each for extra in (None, *PROJECT["optional-dependencies"]) for each in requirements(extra)]
    outside = {str(each) for each in ranges if not each.specifier.contains(pins.get(canonicalize_name(each.name), "0"))}
    assert outside <= {"tqdm>=4.66", "rdkit>=2024.3"}, "huggingface-hub pins one; no test needs the other"


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_range_is_as_wide_as_is_tested(package: str) -> None:
    specifier = allowed(package).specifier
    tested = sorted(Version(version) for name, version in (each.split("==") for each in VERSIONS) if name == package)
    assert all(version in specifier for version in tested)
    bounds = {one.operator: one.version for one in specifier}
    assert tested[0].release[:2] == Version(bounds[">="]).release[:2]
    major, minor = tested[-1].release[:2]
    assert Version(bounds["<"]) == Version(f"{major}.{minor + 1}")
    if package == "torch":  # what a missing name of torch advises
        assert f"install torch>={bounds['>=']},<{bounds['<']}" in Path(torch_internals.__file__).read_text("utf-8")
    table = (ROOT / "docs" / "library.md").read_text("utf-8")
    assert all(f"| {version} |" in table for version in tested), "each has its row in the documentation"


def test_a_folder_opens_in_the_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my model").mkdir()
    monkeypatch.chdir(tmp_path)
    found = urlsplit(lab_address(Path("./my model")))
    assert found.path == "model-lab"
    assert parse_qs(found.query) == {"ml-source": ["folder"], "ml-folder": [str(tmp_path / "my model")]}


@pytest.mark.parametrize("typed", [[], ["nowhere"]])
def test_what_is_no_folder_says_so(
    typed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["attention-atlas", "open", *typed])
    with pytest.raises(SystemExit):
        main()
    assert "expected a folder with a model" in capsys.readouterr().err


def test_a_folder_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "my model", tmp_path / "out"
    folder.mkdir()
    torch.save({"a": torch.arange(3)}, folder / "pytorch_model.bin")
    monkeypatch.setattr(sys, "argv", ["attention-atlas", "convert", str(folder), str(out)])
    main()
    assert load_file(out / "model.safetensors")["a"].tolist() == [0, 1, 2]
    shown = capsys.readouterr().out
    assert "1 of 1: pytorch_model.bin" in shown
    assert f"attention-atlas open {out}" in shown
    with pytest.raises(SystemExit, match="is in out already: nothing was written"):
        main()
