"""Run every part, or the named ones: print the results, save the samples, update README.md and docs/benchmarks.md."""

import argparse
import importlib
from collections.abc import Sequence

from benchmarks import report

PARTS = (
    "recording",
    "map_queries",
    "attention_view",
    "sinusoid_heatmap",
    "translating",
    "circuits",
    "visiting",
    "static_site",
)
"""Modules of this package with `measure(...) -> list[Row]`, and QUICK, arguments for a try-out."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; the exit status is 1 if a part could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all of them unless given")
    parser.add_argument("--quick", action="store_true", help="try each part out at a tiny size, and keep nothing")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(PARTS)}")
    print(", ".join(f"{key} {value}" for key, value in report.machine().items()))
    failed = []
    for part in options.parts or PARTS:
        print(f"measuring {part} (Ctrl-C goes on to the next) ...", flush=True)
        module = importlib.import_module(f"benchmarks.{part}")
        try:
            rows = module.measure(**(module.QUICK if options.quick else {}))
        except KeyboardInterrupt:
            print(f"{part} was interrupted; what was saved before stays", flush=True)
            continue
        except Exception as error:
            print(f"{part} could not be measured: {error or type(error).__name__}", flush=True)
            failed.append(part)
            continue
        print(report.table(rows), flush=True)
        if not options.quick:
            report.save(part, rows)
    if not options.quick:
        report.write(PARTS)
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
