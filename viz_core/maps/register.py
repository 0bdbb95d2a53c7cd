"""Register of the measures of heads, one file each in the folder head_measures.

To add one, write a file there that defines `MEASURE`, and its words `measure_NAME` and `about_NAME` in
assets/text/LANGUAGE/attention-view.md. Fingerprints, the attention view and the model lab list the register.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from viz_core.maps.head_measure import Measure

_FOLDER = "viz_core.maps.head_measures"


def _read_register() -> dict[str, Measure]:
    entries = import_module(_FOLDER)
    modules = [import_module(f"{_FOLDER}.{each.name}") for each in iter_modules(entries.__path__)]
    measures: list[Measure] = [module.MEASURE for module in modules]
    return {measure.name: measure for measure in sorted(measures, key=lambda measure: measure.order)}


MEASURES = _read_register()
"""Every measure by its name, in the order in which they are listed."""
