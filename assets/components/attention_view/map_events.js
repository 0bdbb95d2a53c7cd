// Mouse, touch and keyboard on the opened map.

function listenToMap(view) {
  const { stage } = view.parts;
  const hit = (event) => {
    const box = stage.getBoundingClientRect();
    return hitMap(view.layout, view.cells, event.clientX - box.left, event.clientY - box.top);
  };

  let touching = false;
  stage.addEventListener("pointerdown", (event) => {
    touching = event.pointerType === "touch";
  });
  stage.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch") pointAt(view, hit(event));
  });
  stage.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "touch") pointAt(view, null);
  });
  stage.addEventListener("click", (event) => {
    const at = hit(event);
    if (!at) return;
    // A finger has no hover: its tap points as well, and along a pinned row it reads cell after cell.
    const reads = touching && !samePlace(at, view.cursor) && at.by === "query" && at.row === pinnedCell(view).row;
    if (touching) pointAt(view, at);
    if (!reads) togglePin(view, at.by, at.by === "query" ? at.row : at.column);
  });
  stage.addEventListener("blur", () => pointAt(view, null));
  stage.addEventListener("keydown", (event) => moveInMap(view, event));
}

function moveInMap(view, event) {
  const { cells, cursor } = view;
  const pinned = pinnedCell(view);
  const row = cursor?.row ?? pinned.row ?? 0;
  const column = cursor?.column ?? pinned.column ?? 0;
  const started = cursor !== null;
  const place = {
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    Home: [row, 0],
    End: [row, cells.columns - 1],
  }[event.key];
  if (place) {
    const [toRow, toColumn] = started ? place : [row, column];
    pointAt(view, {
      row: Math.max(0, Math.min(cells.rows - 1, toRow)),
      column: Math.max(0, Math.min(cells.columns - 1, toColumn)),
      by: "query",
    });
  } else if (event.key === "Enter" || event.key === " ") {
    pointAt(view, { row, column, by: "query" });
    togglePin(view, "query", row);
  } else {
    return;
  }
  event.preventDefault();
  announce(view);
}

const samePlace = (a, b) => a?.row === b?.row && a?.column === b?.column && a?.by === b?.by;
