// Seconds in the page: from what a reader does to the frame after the one in which it is there.
window.atlas = {
  nextFrame: () => new Promise((resolve) => requestAnimationFrame(resolve)),

  /** Do it, and wait until `there()` is true. What it does may be a promise, and may fail. */
  async until(act, there) {
    const start = performance.now();
    let failure = null;
    Promise.resolve(act()).catch((error) => (failure = error));
    while (!there()) {
      if (failure) throw failure;
      await this.nextFrame();
    }
    await this.nextFrame();
    return (performance.now() - start) / 1000;
  },

  /** The same from the next key on a slider, which has the focus. */
  fromKey(label, there) {
    const slider = document.querySelector(`input[aria-label="${label}"]`);
    slider.focus();
    return new Promise((resolve) => {
      slider.addEventListener("keydown", () => resolve(this.until(() => {}, there)), { once: true, capture: true });
    });
  },

  /** Do it, and note when `count()` first reached each of `marks`. */
  async reaching(act, count, marks) {
    const start = performance.now();
    const times = [];
    act();
    while (times.length < marks.length) {
      await this.nextFrame();
      const reached = count();
      await this.nextFrame();
      while (times.length < marks.length && reached >= marks[times.length]) times.push((performance.now() - start) / 1000);
    }
    return times;
  },

  /** Do it, and note when `picture()` last changed before it stayed the same for `quiet` seconds. */
  async settling(act, picture, quiet) {
    let before = picture();
    let last = null;
    const start = performance.now();
    act();
    while (last === null || performance.now() - last < 1000 * quiet) {
      await this.nextFrame();
      const now = picture();
      if (now === before) continue;
      before = now;
      await this.nextFrame();
      last = performance.now();
    }
    return (last - start) / 1000;
  },
};

// Our attention view: its heads, how many have their picture, and what the opened one's canvas shows.
window.ours = {
  root: () =>
    [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")]
      .map((host) => host.shadowRoot)
      .find((root) => root?.querySelector(".view")),
  show: () => [...document.querySelectorAll("button")].find((button) => button.textContent.trim() === "Show").click(),
  painted: () => ours.root()?.querySelectorAll(".head:not(.absent) canvas").length ?? 0,
  opened() {
    const { layer, head } = ours.root().querySelector(".head[aria-selected=true]").dataset;
    return `${layer}.${head}`;
  },
  open: (layer, head) => ours.root().querySelector(`.head[data-layer="${layer}"][data-head="${head}"]`).click(),
  picture() {
    const small = Object.assign(document.createElement("canvas"), { width: 48, height: 48 });
    const context = small.getContext("2d", { willReadFrequently: true });
    for (const canvas of ours.root().querySelectorAll("canvas")) {
      if (canvas.clientWidth > 200 && canvas.width && canvas.height) context.drawImage(canvas, 0, 0, 48, 48);
    }
    return context.getImageData(0, 0, 48, 48).data.join();
  },
};

// BertViz: each of its views draws all it has before it lets the page go on.
window.bertviz = {
  drawn: () => Boolean(document.querySelector("#vis svg")),
  model_view(layer, head) {
    const thumbnail = document.getElementById(`attn_background_${layer}_${head}`).parentNode;
    const act = () => thumbnail.lastElementChild.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    const title = `Layer ${layer}, Head ${head}`;
    return atlas.until(act, () => [...document.querySelectorAll("text.detail")].some((text) => text.textContent === title));
  },
  head_view: (layer) => atlas.until(() => jQuery("#layer").val(layer).change(), bertviz.drawn),
};

// When the page last changed, and when a picture first showed in the window: milliseconds since the address was asked for.
window.watch = {
  start: 0, last: 0, picture: null, shift: 0, fresh: true, roots: [document],

  restart() {
    Object.assign(this, { start: performance.now(), last: 0, picture: null, fresh: true });
    this.look();
  },

  changed() {
    this.last = performance.now() - this.start;
    this.fresh = true;
  },

  /** Whether nothing has changed for so many seconds, and the server has nothing more to say. */
  quietFor(seconds) {
    const running = document.querySelector("[data-testid=stApp]")?.dataset.testScriptState !== "notRunning";
    return !running && performance.now() - this.start - this.last > 1000 * seconds;
  },

  /** Every frame until there is one; where nothing has changed, nothing is measured, for that takes a page's own time. */
  look() {
    const fresh = this.fresh;
    this.fresh = false;
    const inWindow = (node) => {
      const { top, bottom, width, height } = node.getBoundingClientRect();
      return width > 40 && height > 40 && bottom > 0 && top < innerHeight && (node.tagName !== "IMG" || node.naturalWidth);
    };
    const pictures = !fresh ? [] : this.roots.flatMap((root) => [...root.querySelectorAll("canvas, [data-drawn], [data-testid=stMain] img")]);
    if (pictures.some(inWindow)) this.picture = performance.now() - this.start;
    else requestAnimationFrame(() => this.look());
  },

  /** Changes in this document or shadow root count. */
  over(root) {
    const all = { subtree: true, childList: true, attributes: true, characterData: true };
    new MutationObserver(() => this.changed()).observe(root, all);
  },
};
watch.over(document);
document.addEventListener("load", () => (watch.fresh = true), { capture: true }); // a picture's file
watch.look();
// The sum of layout-shift scores (web.dev/cls).
new PerformanceObserver((list) => {
  for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) watch.shift += value;
}).observe({ type: "layout-shift", buffered: true });
const attachShadow = Element.prototype.attachShadow;
Element.prototype.attachShadow = function (...settings) {
  const root = attachShadow.apply(this, settings);
  watch.roots.push(root);
  watch.over(root);
  return root;
};
