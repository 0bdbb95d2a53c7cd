"""Learning in front of a reader: how long two layers need to repeat, who has to wait meanwhile, and its time line."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from playwright.sync_api import Browser, sync_playwright

from benchmarks.browsing import Visitor, chromium, visit
from benchmarks.report import Row
from benchmarks.serving import running
from viz_core.lessons.learning.own_run import plan_for
from viz_core.tasks import Shape, TaskRun

QUICK = {"samples": 1, "trainings": 1}
LEARNED, ANSWERED, PAINTED = 60.0, 0.3, 0.15  # seconds
BAR = 0.85  # share right of what was never trained on, as the chapter claims of its recorded runs
TIMEOUT = 300.0

OWN, LONG = "learning?l-source=own", "learning?l-source=own&l-steps=3200"  # the chapter's own settings; a long run
_BEGIN = "document.querySelector('.st-key-l-train-start button').click()"
_LEARNED = f"""() => atlas.until(() => {_BEGIN}, () => {{
  const said = document.querySelector("[data-testid=stMain]").textContent.match(/updates: (\\d+)% of what it is asked/);
  return said && Number(said[1]) >= {100 * BAR:g};
}})"""
_TRAINS = "document.querySelector('.st-key-l-train-stop button')"
_ROWS = """[...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")]
  .map((host) => host.shadowRoot?.querySelector(".stage")).find(Boolean)?.dataset.rows"""
# The step that the view shows is written in one go with its maps; to read their pixels would cost as much as a frame.
_STEP = """ours.root().querySelector("[data-part=tabs]").textContent"""
_READY = "window.ours?.painted() > 0 && watch.quietFor(2)"
_LINE = "After so many updates"
_HELD = "Number(ours.root().querySelector('.view').dataset.pages) > 0"
_CHANGED = f"{_STEP} !== window.before"


def measure(samples: int = 11, trainings: int = 3) -> list[Row]:
    """Seconds: to the bar, in the library and from the click in the app; and from a slider's key to what it shows.

    Everything is computed on one thread.

    Raises:
        RuntimeError: if there is no Chromium, the server does not start, or a run does not learn.
    """
    alone = tuple(_train(seed) for seed in range(trainings))
    with (
        tempfile.TemporaryDirectory() as log,
        running(Path(log), settings={"ATLAS_THREADS": "1"}) as server,
        sync_playwright() as playwright,
        chromium(playwright) as browser,
    ):
        watched = tuple(_watch(browser, f"{server.url}/{OWN}&l-train-seed={seed}") for seed in range(trainings))
        idle, busy = _beside(browser, server.url, samples)
        keyed, dragged = _scrubbed(browser, f"{server.url}/learning", samples)
    slider = "a slider of another chapter, key to paint, while one trains"
    return [
        Row("two layers learn to repeat, on one thread", "s", alone, target=LEARNED),
        Row("the same in the app, from the click, every step drawn", "s", watched, target=LEARNED),
        Row(slider, "s", busy, "nobody trains", idle, target=ANSWERED),
        Row("the time line of a recorded run, key to the frame painted", "s", keyed, target=PAINTED),
        Row("the same dragged with the mouse, which is not let go", "s", dragged, target=PAINTED),
    ]


def _train(seed: int) -> float:
    """The chapter's own run, in the library alone."""
    torch.set_num_threads(1)
    begun = time.perf_counter()
    run = TaskRun(plan_for("repeat", Shape(), steps=400, longest=10, seed=seed))
    for _ in run.advance():
        if run.snapshots[-1].accuracy >= BAR:
            return time.perf_counter() - begun
    raise RuntimeError(f"seed {seed}: expected {BAR:.0%} right, got {run.accuracy():.0%}")


def _watch(browser: Browser, url: str) -> float:
    """The same run, with somebody looking on."""
    with visit(browser, url) as reader:
        reader.page.wait_for_selector(".st-key-l-train-start button")
        reader.page.wait_for_function("watch.quietFor(1)")
        return float(reader.within(TIMEOUT, _LEARNED))


def _beside(browser: Browser, url: str, samples: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A slider of another chapter in another window: while nobody trains, and while one does."""
    rows = 60
    with visit(browser, f"{url}/sinusoidal-encoding?se-d=32&se-n={rows}") as other, visit(browser, url) as reader:

        def step() -> float:
            nonlocal rows
            rows += 1
            seconds = other.press("Positions n", "ArrowRight", f"{_ROWS} === '{rows}'")
            other.page.wait_for_function("watch.quietFor(0.5)")  # what else the page sends has come
            return seconds

        other.page.wait_for_function(f"{_ROWS} === '{rows}' && watch.quietFor(2)")
        idle = tuple(step() for _ in range(samples))
        reader.page.goto(f"{url}/{LONG}")
        reader.page.wait_for_selector(".st-key-l-train-start button")
        reader.page.wait_for_function("watch.quietFor(1)")
        reader.page.evaluate(_BEGIN)
        reader.page.wait_for_function(_TRAINS)
        busy = tuple(step() for _ in range(samples))
        if not reader.page.evaluate(f"Boolean({_TRAINS})"):
            raise RuntimeError("the run was over before the slider was moved as often as it shall be")
    return idle, busy


def _scrubbed(browser: Browser, url: str, samples: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Back from the last step of a recorded run, one snapshot after the other: by key, then with the mouse."""
    with visit(browser, url) as reader:
        reader.page.wait_for_function(_READY)
        line = reader.page.get_by_test_id("stSlider").filter(has=reader.page.get_by_label(_LINE))
        slider = line.get_by_role("slider")
        slider.focus()  # a reader reaches for it first
        reader.page.wait_for_function(_HELD)
        keyed = tuple(_frame(reader, lambda: reader.press(_LINE, "ArrowLeft", _CHANGED)) for _ in range(samples))
        thumb = line.get_by_test_id("stSliderThumbValue").locator("..").bounding_box()
        track = line.bounding_box()
        if thumb is None or track is None:
            raise RuntimeError("the time line is not on the page")
        stops = int(slider.get_attribute("max") or 0) / int(slider.get_attribute("step") or 1)
        apart = (track["width"] - thumb["width"]) / stops
        x, y = thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2
        reader.page.mouse.move(x, y)
        reader.page.mouse.down()
        places = (x - apart * (i + 1) for i in range(samples))
        return keyed, tuple(_frame(reader, partial(reader.move, place, y, _CHANGED)) for place in places)


def _frame(reader: Visitor, act: Callable[[], float]) -> float:
    reader.page.wait_for_function(_READY)
    reader.page.evaluate(f"window.before = {_STEP}")
    return act()
