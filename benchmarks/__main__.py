"""Run every benchmark, or those named, print one table and keep the samples."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import benchmarks
from benchmarks.report import machine, save, table

# A benchmark is a module of this package with a function `measure() -> list[Row]`.
NAMES = sorted(
    module.name
    for module in pkgutil.iter_modules(benchmarks.__path__)
    if not module.ispkg and module.name not in {"__main__", "report", "serving"}
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}; all of them unless given")
    names = parser.parse_args().names or NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    rows = []
    for name in names:
        print(f"measuring {name} ...", flush=True)
        found = importlib.import_module(f"benchmarks.{name}").measure()
        save(name, found)
        rows += found
    print(table(rows))


if __name__ == "__main__":
    main()
