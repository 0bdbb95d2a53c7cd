// The sentence itself, shaded by what the token pointed at (or pinned) looks at, or is looked at by.

const LONG_TOKEN = 18;

/** Buttons for the tokens; rebuilt only for another sentence, so that focus stays. */
function buildSentence(view) {
  const group = view.payload.group(view.open.group);
  for (const [axis, line, tokens] of linesOf(view)) {
    line.setAttribute("aria-label", axis === "query" ? group.queries_label : group.keys_label);
    const shape = JSON.stringify(tokens);
    if (line.dataset.shape === shape) continue;
    line.dataset.shape = shape;
    line.replaceChildren(
      ...tokens.map((token, index) => {
        const button = element("button", "token", { type: "button" });
        Object.assign(button.dataset, { axis, index });
        const text = visible(token);
        button.textContent = text;
        if (text.length > LONG_TOKEN) button.title = text;
        button.tabIndex = index ? -1 : 0;
        return button;
      }),
    );
  }
}

function linesOf(view) {
  const group = view.payload.group(view.open.group);
  return [
    ["query", view.parts.queryLine, group.query_tokens],
    ["key", view.parts.keyLine, group.key_tokens],
  ];
}

/** Shade the tokens and write the line under them. */
function renderSentence(view) {
  const { cells } = view;
  const focus = focusToken(view);
  for (const [axis, line] of linesOf(view)) {
    const own = axis === "query" ? cells.queries : cells.keys;
    const shaded = focus !== null && focus.axis !== axis;
    for (const button of line.children) {
      const index = Number(button.dataset.index);
      const bin = own.binOf(index);
      const chosen = focus?.axis === axis && focus.bin === bin;
      button.classList.toggle("chosen", chosen);
      button.setAttribute("aria-pressed", view.pin?.axis === axis && view.pin.index === index);
      const step = shaded && view.scale(axis === "key" ? cells.weight(focus.bin, bin) : cells.weight(bin, focus.bin));
      button.style.backgroundColor = shaded ? paletteCss(step) : "";
      button.style.color = shaded ? inkOn(step) : "";
    }
  }
  renderSentenceNote(view);
}

function renderSentenceNote(view) {
  const { sentenceNote } = view.parts;
  const said = describePointer(view);
  const notes = [];
  if (view.pin) {
    const { axis, index } = view.pin;
    const own = axis === "query" ? view.cells.queries : view.cells.keys;
    notes.push(["pinned", { token: visible(own.tokens[index]) }]);
  }
  notes.push(said ?? ["sentence_hint", {}]);
  sentenceNote.replaceChildren(
    ...notes.flatMap(([name, values]) => {
      const note = element("span", "");
      view.words.into(note, name, values);
      return [note, " "];
    }),
  );
}

function listenToSentence(view) {
  const token = (event) => event.target.closest?.(".token");
  const place = (button) => {
    const { axis, index } = button.dataset;
    return axis === "query"
      ? { row: view.cells.queries.binOf(Number(index)), column: null, by: "query" }
      : { row: null, column: view.cells.keys.binOf(Number(index)), by: "key" };
  };
  for (const line of [view.parts.queryLine, view.parts.keyLine]) {
    line.addEventListener("pointerover", (event) => {
      if (event.pointerType !== "touch" && token(event)) pointAt(view, place(token(event)));
    });
    line.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") pointAt(view, null);
    });
    line.addEventListener("focusin", (event) => {
      if (!event.target.matches(":focus-visible")) return;
      pointAt(view, place(event.target));
      announce(view);
    });
    line.addEventListener("focusout", () => pointAt(view, null));
    line.addEventListener("click", (event) => {
      if (!token(event)) return;
      const { axis, index } = token(event).dataset;
      setPin(view, { axis, index: Number(index) });
    });
    line.addEventListener("keydown", (event) => moveInSentence(line, event));
  }
}

function moveInSentence(line, event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const next = step && line.children[Number(event.target.dataset.index) + step];
  if (!next) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
