"""The register of families: each is shrunk, run with and without the inspector, and compared; a row each.

`python -m tests.viz_core.hub.family_table` writes the first two parts of docs/architectures.md (`make families`); with
names, their rows alone. tests/viz_core/hub/test_family_table.py holds a third of the table against the models.
"""

import contextlib
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from tests.viz_core.hub.shrunk import inputs_of, shrunk
from viz_core.hub import coverage, instrument, verify
from viz_core.trace import Trace, record, site_of
from viz_core.trace.coverage import describe_uncovered
from viz_core.trace.outputs import pooled
from viz_core.trace.sites import projections

TABLE = Path(__file__).resolve().parents[3] / "docs" / "architectures.md"
SECONDS = 60
ERRORS = range(6, 10)  # their columns
_SOFTMAX = ("softmax", "difference of softmaxes")


class NotRunError(Exception):
    """A family that cannot be shrunk, or whose inputs are not known."""


@dataclass(frozen=True)
class Row:
    """What a family gave. Errors are None where nothing was compared.

    Attributes:
        inputs: what it was run with.
        layers, mapped: how many layers it has, and of how many a recording has a map.
        rules: of the recorded layers.
        states: how many states were recorded.
        output: error of the output with the inspector.
        maps: largest difference of a map from eager's.
        values: weights times values against what the heads wrote.
        used: weights times values against what the output projection reads.
        reasons: why layers have no map.
    """

    family: str
    inputs: str
    layers: int
    mapped: int
    rules: str
    states: int
    output: float | None
    maps: float | None
    values: float | None
    used: float | None
    reasons: str

    def line(self) -> str:
        """Return the line of the table."""
        errors = ("" if each is None else f"{each:.0e}" for each in (self.output, self.maps, self.values, self.used))
        counts = f"{self.layers} | {self.mapped} | {self.rules} | {self.states}"
        return f"| {self.family} | {self.inputs} | {counts} | {' | '.join(errors)} | {self.reasons} |"


def families() -> list[str]:
    """Return every family with a base model."""
    return sorted(MODEL_MAPPING_NAMES)


@torch.no_grad()
def measure(family: str) -> Row:
    """Run a family.

    Raises:
        NotRunError: if it cannot be shrunk, or no inputs fit.
    """
    with _quiet():
        try:
            model = shrunk(family)
        except Exception as error:
            raise NotRunError(_why(error)) from error
        inputs = _fitting(model)
        rows = coverage(model)
        layers = {(each.stack, each.layer) for each in rows if each.layer is not None}
        mapped = {(each.stack, each.layer) for each in rows if each.site and each.layer is not None}
        if not mapped:
            return Row(family, _kinds(inputs), len(layers), 0, "", 0, *[None] * 4, describe_uncovered(rows))
        found = verify(model, **inputs)
        instrument(model, verify=False)
        used = dict[str, float]()
        with record(values=True, states=True) as trace, _projected(model, trace, used):
            model(**inputs)
        rules = ", ".join(dict.fromkeys(call.rule for call in trace))
        errors = (found.output_error, found.map_error, found.value_error, max(used.values(), default=None))
        counts = len(layers), len(mapped)
        return Row(family, _kinds(inputs), *counts, rules, len(trace.states), *errors, describe_uncovered(rows))


def _fitting(model: nn.Module) -> dict[str, Tensor]:
    """Return the first inputs that the model takes, if its output is made of numbers."""
    why = "its inputs are not known here"
    for number, inputs in enumerate(inputs_of(model)):
        try:
            result = model(**inputs)
        except Exception as error:
            why = why if number else f"its inputs are not known here: {_why(error)}"
            continue
        tensors = [each for each in result.values() if isinstance(each, Tensor) and each.is_floating_point()]
        if not tensors or not all(bool(each.isfinite().all()) for each in tensors):
            raise NotRunError("its output is not all numbers with random weights")
        return inputs
    raise NotRunError(why)


def _kinds(inputs: dict[str, Tensor]) -> str:
    """Return what inputs are, in words."""
    kinds = {"past_values": "series", "decoder_input_ids": "words", "input_ids": "words", "input_values": "sound"}
    kinds |= {"input_features": "sound", "grid_thw": "patches", "pixel_values": "pictures"}
    return ", ".join(dict.fromkeys(kinds[name] for name in inputs if name in kinds)) or next(iter(inputs))


def _why(error: Exception) -> str:
    text = re.sub(r"[\s|]+", " ", str(error)).strip()
    missing = re.search(r"requires the (\w+) library", text)
    return f"needs {missing[1]}" if missing else f"{type(error).__name__}: {text.split('. ')[0][:90]}"


@contextlib.contextmanager
def _projected(model: nn.Module, trace: Trace, used: dict[str, float]) -> Iterator[None]:
    """Compare what output projections read with weights times values, relative to the largest number read."""
    parts = dict(model.named_modules())
    paths = {site: path for path, module in parts.items() if (site := site_of(module))}

    def read(site: str, inputs: tuple[Any, ...]) -> None:
        call = next((each for each in trace if each.site == site), None)
        given = inputs[0] if inputs and isinstance(inputs[0], Tensor) else None
        if call is None or given is None or site in used or call.rule not in _SOFTMAX:
            return
        try:
            values = call.values.float().cpu()
        except ValueError:  # a layer with code of its own keeps none
            return
        written = pooled(call.weights(), values, 0.0).transpose(1, 2).flatten(2)
        if given.dim() == 3 and given.shape[:2] == written.shape[1::-1]:  # not batch first
            given = given.transpose(0, 1)
        if given.numel() == written.numel():
            given = given.reshape(written.shape).float()
            used[site] = float((given - written).abs().max() / given.abs().max().clamp(min=1e-30))

    handles = []
    for site, path in paths.items():
        for part in projections(parts, path):
            handles.append(part.register_forward_pre_hook(lambda _part, given, site=site: read(site, given)))
            break
    yield
    for handle in handles:
        handle.remove()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    transformers.logging.set_verbosity(verbosity)


def written() -> dict[str, str]:
    """Return the lines of the table by family."""
    part = TABLE.read_text(encoding="utf-8").partition(HEAD.partition("| family")[2])[2].partition("\n\n")[0]
    return {found[1]: found[0] for found in re.finditer(r"^\| (\S+) \|.*$", part, re.MULTILINE)}


HEAD = """# Families that are recorded

Each family of transformers {version} as a tiny random model of a few layers, run with and without the inspector on
padded words, pictures or sounds (`make families`, {date}). *With a map* is what `coverage` says. *Rules* are
those of the layers recorded in this run, in which some models read words alone: without one, nothing was recorded.
Errors are the largest, relative but for maps:

- **output**: with the inspector against without it.
- **maps**: recorded weights against those that eager attention returns. Empty: it returns none of that shape.
- **heads**: weights times values against what the heads wrote.
- **used**: softmax weights times values against what the output projection reads. A gate, a norm or a factor between
  the two shows here: see [wrong maps](wrong-maps.md).

{run} of {count} families run; {attending} of them have attention, and every layer of {whole} has a map.

| family | inputs | layers | with a map | rules | states | output | maps | heads | used | without a map |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
NOT_RUN = """
## Not run

What cannot be made small by the names of its config's sizes, or reads inputs that are not made here. Nothing follows
about its layers; `viz_core.hub.coverage` tells, and `viz_core.hub.verify` on inputs of your own.

| reason | families |
| --- | --- |
"""


def _limited(family: str) -> Row:
    def stop(*_: Any) -> None:
        raise NotRunError(f"takes more than {SECONDS} seconds")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return measure(family)
    finally:
        signal.alarm(0)


def _kind(reason: str) -> str:
    """Return the reason without what differs by family."""
    for start, kind in (("its inputs", "its inputs are not made here"), ("needs ", reason)):
        if reason.startswith(start):
            return kind
    return "still large" if "million parameters" in reason else "its sizes depend on one another in ways not known here"


def main() -> None:
    """Write the table, or print rows."""
    import datetime

    torch.set_num_threads(1)
    rows, missed = list[Row](), dict[str, list[str]]()
    for family in sys.argv[1:] or families():
        try:
            rows.append(_limited(family))
            print(rows[-1].line(), flush=True)
        except NotRunError as error:
            missed.setdefault(_kind(str(error)), []).append(family)
            print(family, "not run:", error, flush=True)
        except Exception as error:
            print(family, "FAULT", type(error).__name__, error, flush=True)
            missed.setdefault(f"a fault of ours: {_why(error)}", []).append(family)
    lines = {each.family: each.line() for each in rows}
    before, not_run, rest = TABLE.read_text(encoding="utf-8").partition(NOT_RUN)
    date = str(datetime.date.today())
    if sys.argv[1:]:  # the others are as before
        for kind, names in re.findall(r"^\| (.+) \| \d+: (.+) \|$", rest, re.MULTILINE):
            missed[kind] = sorted({*names.split(", "), *missed.get(kind, ())} - {*lines})
        lines, (date,) = dict(sorted((written() | lines).items())), re.findall(r"`make families`, ([\d-]+)", before)
    kinds = (f"| {kind} | {len(names)}: {', '.join(names)} |\n" for kind, names in sorted(missed.items()) if names)
    rest = "".join([*kinds, *rest.partition("\n## timm")[1:]])
    cells = [[each.strip() for each in line.split("|")] for line in lines.values()]
    attending = [each for each in cells if int(each[3])]
    whole = sum(each[3] == each[4] and bool(each[5]) for each in attending)
    numbers = {"run": len(cells), "count": len(families()), "attending": len(attending), "whole": whole}
    head = HEAD.format(version=transformers.__version__, date=date, **numbers)
    TABLE.write_text(head + "".join(line + "\n" for line in lines.values()) + not_run + rest, encoding="utf-8")


if __name__ == "__main__":
    main()
