// Tabs for the kinds of maps, and the grid of every layer's heads as thumbnails.

const LARGEST_THUMBNAIL = 56;
const SMALLEST_THUMBNAIL = 20;
// As in the style sheet: what the grid's width holds beside thumbnails.
const GRID_GAP = 5;
const LAYER_NAMES = 24;

function element(tag, className, attributes = {}) {
  const node = document.createElement(tag);
  node.className = className;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/** Tabs, one for each group; rebuilt only when the groups have changed, so that focus stays. */
function renderTabs(view) {
  const { tabs, panel } = view.parts;
  const { groups } = view.payload.header;
  const shape = JSON.stringify(groups.map((group) => [group.id, group.label]));
  if (tabs.dataset.shape !== shape) {
    tabs.dataset.shape = shape;
    tabs.replaceChildren(
      ...groups.map((group) => {
        const tab = element("button", "tab", { type: "button", role: "tab", id: `tab-${group.id}` });
        tab.textContent = group.label;
        tab.addEventListener("click", () => openHead(view, { group: group.id, layer: 0, head: 0 }));
        return tab;
      }),
    );
  }
  tabs.hidden = groups.length < 2;
  groups.forEach((group, i) => {
    const chosen = group.id === view.open.group;
    tabs.children[i].setAttribute("aria-selected", chosen);
    tabs.children[i].tabIndex = chosen ? 0 : -1;
  });
  panel.setAttribute("aria-labelledby", `tab-${view.open.group}`);
}

function moveInTabs(view, event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const tabs = [...view.parts.tabs.children];
  const tab = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
  tab.click();
  tab.focus();
}

/** The grid's buttons; their pictures are painted by `paintGrid`. */
function buildGrid(view) {
  const { grid } = view.parts;
  const { layers } = view.payload.group(view.open.group);
  const { words } = view;
  const widest = Math.max(...layers.map((layer) => layer.heads));
  const { language } = view.payload.header;
  const shape = JSON.stringify([language, view.open.group, layers.map((layer) => [layer.number, layer.heads])]);
  if (grid.dataset.shape === shape) return;
  grid.dataset.shape = shape;
  grid.style.setProperty("--heads", widest);

  const names = element("div", "row", { role: "row" });
  names.append(element("span", "name", { role: "columnheader" }));
  for (let head = 0; head < widest; head += 1) {
    const name = element("span", "name", { role: "columnheader" });
    name.textContent = words.text("head_short", { head: head + 1 });
    names.append(name);
  }
  const rows = layers.map((layer, index) => {
    const row = element("div", "row", { role: "row" });
    const name = element("span", "name", { role: "rowheader" });
    name.textContent = words.text("layer_short", { layer: layer.number });
    row.append(name);
    for (let head = 0; head < layer.heads; head += 1) {
      const button = element("button", "head", { type: "button", role: "gridcell" });
      Object.assign(button.dataset, { layer: index, head });
      button.append(document.createElement("canvas"));
      row.append(button);
    }
    return row;
  });
  grid.replaceChildren(names, ...rows);
}

const addressOf = (view, button) => ({
  group: view.open.group,
  layer: Number(button.dataset.layer),
  head: Number(button.dataset.head),
});

const headName = (view, { group, layer, head }) =>
  view.words.text("head_name", { layer: view.payload.group(group).layers[layer].number, head: head + 1 });

const entropyOf = (view, { group, layer, head }) => view.payload.group(group).layers[layer].stats[head].entropy;

const entropyText = (view, bits) => view.words.text("entropy", { value: view.words.plain(bits) });

/** Sizes, pictures and names of the thumbnails: after new data, another group, theme or width. */
function paintGrid(view) {
  const { grid } = view.parts;
  const widest = Number(grid.style.getPropertyValue("--heads"));
  const room = grid.clientWidth - 6 - LAYER_NAMES - GRID_GAP * widest;
  const size = Math.max(SMALLEST_THUMBNAIL, Math.min(LARGEST_THUMBNAIL, Math.floor(room / widest)));
  grid.style.setProperty("--thumbnail", `${size}px`);
  const steps = byteSteps(view.scale);
  for (const button of grid.querySelectorAll(".head")) {
    const address = addressOf(view, button);
    const context = sizeCanvas(button.firstChild, size, size);
    const { width, height } = context.canvas;
    context.putImageData(rasterise(view.payload.thumbnail(address), steps, width, height), 0, 0);
    const entropy = entropyOf(view, address);
    const name = headName(view, address);
    button.setAttribute("aria-label", name);
    button.title = entropy === null ? name : `${name}\n${entropyText(view, entropy)}`;
  }
}

/** Which head is open, in the grid and in words under it. */
function markOpenHead(view) {
  for (const button of view.parts.grid.querySelectorAll(".head")) {
    const { layer, head } = addressOf(view, button);
    const chosen = layer === view.open.layer && head === view.open.head;
    button.setAttribute("aria-selected", chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
  const { headline } = view.parts;
  const entropy = entropyOf(view, view.open);
  const name = element("span", "");
  name.textContent = headName(view, view.open);
  const measure = element("span", "measure");
  if (entropy !== null) view.words.into(measure, "entropy", { value: view.words.plain(entropy) });
  headline.replaceChildren(name, " ", measure);
}

function moveInGrid(view, event) {
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (!steps) return;
  event.preventDefault();
  const to = { ...view.open, layer: view.open.layer + steps[0], head: view.open.head + steps[1] };
  if (to.layer < 0 || to.head < 0 || !view.payload.has(to)) return;
  openHead(view, to, PATIENCE);
  view.parts.grid.querySelector(".head[aria-selected=true]").focus();
}
