"""Run every part, or the named ones: print the results, save the samples, update README.md and docs/benchmarks.md."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from benchmarks import readme
from benchmarks.parts import PARTS, devices, in_own_process, measured
from benchmarks.report import Row, machine, save, text_table


def main(arguments: Sequence[str] | None = None) -> None:
    options = _arguments(arguments)
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    failed = []
    for part in options.parts or PARTS:
        for device in devices(part, options.device):
            print(f"measuring {part} on {device} (Ctrl-C goes on to the next) ...", flush=True)
            found = _rows(part, device, options.quick)
            if found:
                print(text_table(found), flush=True)
            if found is None:
                failed.append(part)
            elif found and not options.quick:
                save(part, found, device)
    if not options.quick:
        readme.write()
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


def _rows(part: str, device: str, quick: bool) -> list[Row] | None:
    """What a part measured; nothing where it was interrupted, None where it could not be measured."""
    try:
        return in_own_process(partial(measured, part, device, quick))
    except KeyboardInterrupt:
        print(f"{part} was interrupted; what was saved before stays", flush=True)
        return []
    except RuntimeError as error:
        print(f"{part} could not be measured: {error}", flush=True)
        return None


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all of them unless given")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="only there; else wherever a part can run")
    parser.add_argument("--quick", action="store_true", help="try each part out at a tiny size, and keep nothing")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return options


if __name__ == "__main__":
    main()
