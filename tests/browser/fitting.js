// Texts of a page that nobody can read whole: cut off, wider than their box, over one another, or beside the page; and
// lines of Chinese that begin or end with a mark that must not stand there.
// Evaluated twice: before the page's own scripts, to note what is written on canvases; then, settled, to measure.
(() => {
  const SLACK = 1.5; // pixels
  const SPACE = 10; // pixels: where spaces are kept, the last of a line hangs over its end
  const PAGE = "[data-testid=stMain], [data-testid=stSidebarContent]";
  const LINE = 0.3; // of a line's height: what a font reserves above and below its letters

  const MARKS = /(?<=\S)[，。、；：）」』》？！]|[（「『《](?=\S)/g; // each stands in one line with its neighbour
  const OPENING = /[（「『《]/;
  const [CLOSES, OPENS] = [/^[，。、；：）」』》？！,.;:)]/, /[（「『《(]$/];
  const BROKEN = /^[，。、；：）」』》？！].|.[（「『《]$/; // a whole text may be one token

  if (!globalThis.textsThatDoNotFit) noteCanvases();

  /** All that is written on a canvas, until it is wiped: {text, box} in its own pixels. */
  function noteCanvases() {
    const { prototype } = CanvasRenderingContext2D;
    const { fillText, clearRect } = prototype;
    prototype.fillText = function (text, x, y, ...rest) {
      const { actualBoundingBoxLeft: left, actualBoundingBoxRight: right, actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = this.measureText(text);
      const matrix = this.getTransform();
      const corners = [[x - left, y - up], [x + right, y + down]].map(([a, b]) => matrix.transformPoint(new DOMPoint(a, b)));
      const leans = Math.abs(matrix.a * matrix.b) > 0.01; // its box says little of where it is
      (this.canvas.written ??= []).push({ text, leans, box: around(corners.map((p) => p.x), corners.map((p) => p.y)) });
      fillText.call(this, text, x, y, ...rest);
    };
    prototype.clearRect = function (...place) {
      this.canvas.written = [];
      clearRect.apply(this, place);
    };
    for (const side of ["width", "height"]) {
      const { get, set } = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, side);
      Object.defineProperty(HTMLCanvasElement.prototype, side, {
        get,
        set(size) {
          this.written = [];
          set.call(this, size);
        },
      });
    }
  }

  const around = (xs, ys) => ({ left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) });

  globalThis.textsThatDoNotFit = () => {
    const found = new Set();
    const lines = []; // {text, element, box, layer, tight}
    const layouts = new Map();
    const layoutOf = (element) => {
      if (!layouts.has(element)) layouts.set(element, { style: getComputedStyle(element), box: element.getBoundingClientRect() });
      return layouts.get(element);
    };
    const above = (element) => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host ?? null;
    const tell = (kind, text, element) => found.add(`${kind}: “${text.trim().slice(0, 60)}” in ${placeOf(element)}`);

    /** Where it stands, for whoever mends it: up to the nearest name that somebody gave. */
    function placeOf(element) {
      const names = [];
      for (let node = element; node && names.length < 6; node = above(node)) {
        const key = [...node.classList].find((name) => name.startsWith("st-key-"));
        names.unshift(key ?? node.dataset?.testid ?? node.dataset?.part ?? `${node.localName}.${[...node.classList].at(-1) ?? ""}`);
        if (key) break;
      }
      return names.join(" > ");
    }

    const isSeen = (element) => {
      if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
      for (let node = element; node; node = above(node)) {
        const { style, box } = layoutOf(node);
        // For screen readers alone.
        if ((box.width <= 2 || box.height <= 2) && /hidden|clip/.test(style.overflow)) return false;
      }
      return true;
    };

    /** What it floats in over the rest of the page, or null. */
    function layerOf(element) {
      for (let node = element; node; node = above(node)) {
        const { position, zIndex } = layoutOf(node).style;
        if (/fixed|sticky/.test(position) || (position === "absolute" && zIndex !== "auto") || node.localName === "dialog") return node;
      }
      return null;
    }

    /** Compare a line with the boxes it stands in; what is left of it where somebody scrolls is a line that others may hide. */
    function measure(text, element, box, tight = false) {
      const high = tight ? SLACK : LINE * (box.bottom - box.top);
      const hung = /preserve/.test(layoutOf(element).style.whiteSpaceCollapse) ? SPACE : 0;
      const wide = (other) => box.left < other.left - SLACK || box.right > other.right + SLACK + hung;
      const tall = (other) => box.top < other.top - high || box.bottom > other.bottom + high;
      const seen = { ...box };
      const scrolls = { x: false, y: false };
      let [block, painted, floats, wider] = [false, false, false, null];
      for (let node = element; node; node = above(node)) {
        const { style, box: other } = layoutOf(node);
        if (/^(inline|contents)$/.test(style.display) || (floats && style.position === "static")) continue;
        const [x, y] = [style.overflowX, style.overflowY];
        if (!scrolls.x && /hidden|clip/.test(x) && wide(other)) return tell("cut off", text, node);
        if (!scrolls.y && /hidden|clip/.test(y) && tall(other)) return tell("cut off below", text, node);
        for (const [axis, how, from, to] of [["x", x, "left", "right"], ["y", y, "top", "bottom"]]) {
          if (!/auto|scroll/.test(how)) continue;
          scrolls[axis] = true;
          if (axis === "x" && !node.matches(PAGE)) wider = null; // whoever scrolls reads it
          [seen[from], seen[to]] = [Math.max(seen[from], other[from]), Math.min(seen[to], other[to])];
        }
        if (!block && node instanceof HTMLElement && wide(other)) wider = node;
        block = true;
        if (!painted && !floats && isPainted(style) && node instanceof HTMLElement) {
          painted = true;
          if (!scrolls.x && !scrolls.y && (wide(other) || tall(other))) tell("out of its frame", text, node);
        }
        floats = style.position === "absolute";
        if (style.position === "fixed") break;
      }
      if (wider) tell("wider than its box", text, wider);
      if (seen.right - seen.left > 2 && seen.bottom - seen.top > 2) lines.push({ text, element, box: seen, layer: layerOf(element), tight });
      return undefined;
    }

    const isPainted = ({ backgroundColor, borderTopWidth, borderTopColor, borderLeftWidth }) =>
      !/, 0\)$|^transparent$/.test(backgroundColor) || (parseFloat(borderTopWidth) > 0 && parseFloat(borderLeftWidth) > 0 && !/, 0\)$/.test(borderTopColor));

    const IGNORED = "script, style, noscript, option, title, desc, .katex-mathml, [data-testid=stIconMaterial], [data-testid=stSidebar][data-collapsed=true]";

    /** Whether a chart was drawn for a wider window: one that is far away is drawn anew once somebody comes near. */
    function isOld(element) {
      const chart = element.closest(".chart");
      const drawn = chart?.querySelector(".js-plotly-plot")?._fullLayout?.width ?? 0;
      const { top, bottom, width } = chart?.getBoundingClientRect() ?? {};
      return drawn > width + SLACK && (bottom < 0 || top > innerHeight);
    }

    function readText(node) {
      const element = node.parentElement ?? node.getRootNode().host;
      if (!node.data.trim() || !element || element.closest(`${IGNORED}, .katex`) || !isSeen(element)) return;
      if (element.closest("svg")) {
        const text = element.closest("text");
        if (text && !text.closest("[clip-path]") && !isOld(text)) measure(node.data, text, text.getBoundingClientRect(), true);
        if (BROKEN.test(node.data.trim())) tell("broken at a mark", node.data, element);
        return;
      }
      readMarks(node, element);
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) {
        if (box.width > 1 && box.height > 1) measure(node.data, element, plain(box));
      }
    }

    /** A mark in another line than what it opens or closes: a letter, or a formula beside the text. */
    function readMarks(node, element) {
      const { data, previousSibling, nextSibling } = node;
      const hold = (one, next, from) => {
        if (one && next && (next.top + next.bottom) / 2 > one.bottom) tell("broken at a mark", data.slice(Math.max(0, from - 8), from + 8), element);
      };
      const formula = (beside, place) => [...(beside?.querySelectorAll?.(".base") ?? [])].at(place)?.getBoundingClientRect();
      for (const { index } of data.matchAll(MARKS)) {
        const first = OPENING.test(data[index]) ? index : index - 1;
        hold(boxOf(node, first), boxOf(node, first + 1), index);
      }
      if (CLOSES.test(data)) hold(formula(previousSibling, -1), boxOf(node, 0), 0);
      if (OPENS.test(data)) hold(boxOf(node, data.length - 1), formula(nextSibling, 0), data.length);
    }

    /** Where a letter stands. */
    function boxOf(node, place) {
      const range = document.createRange();
      range.setStart(node, place);
      range.setEnd(node, place + 1);
      return range.getClientRects()[0];
    }

    const plain = ({ left, right, top, bottom }) => ({ left, right, top, bottom });

    function readElement(element) {
      if (element.matches(".katex .base")) {
        if (isSeen(element)) measure(element.textContent, element, plain(element.getBoundingClientRect()));
      } else if (element.matches("select")) readSelect(element);
      else if (element.written?.length && isSeen(element)) readCanvas(element);
    }

    function readSelect(element) {
      if (!isSeen(element) || !element.selectedOptions.length) return;
      const { style } = layoutOf(element);
      const ruler = document.createElement("canvas").getContext("2d");
      ruler.font = style.font;
      const text = element.selectedOptions[0].textContent;
      const ARROW = 16;
      const room = element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - ARROW;
      if (ruler.measureText(text).width > room + SLACK) tell("cut off", text, element);
    }

    function readCanvas(canvas) {
      if (canvas.closest("[data-testid=stDataFrame]")) return; // draws cells cut to their columns, which readers widen
      const frame = canvas.getBoundingClientRect();
      const [x, y] = [frame.width / canvas.width, frame.height / canvas.height];
      for (const { text, box, leans } of canvas.written) {
        const { left, top } = frame;
        measure(text, canvas, { left: left + x * box.left, right: left + x * box.right, top: top + y * box.top, bottom: top + y * box.bottom }, true);
        if (BROKEN.test(text)) tell("broken at a mark", text, canvas);
        const last = lines.at(-1);
        if (box.left < -SLACK || box.right > canvas.width + SLACK || box.top < -SLACK || box.bottom > canvas.height + SLACK) tell("beside its canvas", text, canvas);
        if (last?.element === canvas) Object.assign(last, { canvas, leans });
      }
    }

    function walk(root) {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (node.nodeType === Node.TEXT_NODE) readText(node);
        else {
          readElement(node);
          if (node.shadowRoot) walk(node.shadowRoot);
        }
      }
    }

    /** Two texts in one place. */
    function compare(one, two) {
      if ((one.element === two.element && !one.canvas) || one.leans || two.leans) return;
      if (one.layer !== two.layer || one.text === two.text) return;
      if (one.canvas && two.canvas && one.canvas !== two.canvas && one.canvas.parentElement === two.canvas.parentElement) return; // marks over cells
      if ([one, two].some(({ element }) => element.closest(".katex"))) return;
      const letters = ({ box, tight }) => {
        const lead = tight ? 1 : 0.25 * (box.bottom - box.top);
        return { left: box.left + 1, right: box.right - 1, top: box.top + lead, bottom: box.bottom - lead };
      };
      const [a, b] = [letters(one), letters(two)];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 2 && down > 2) tell("over another", `${one.text.trim().slice(0, 28)} | ${two.text.trim().slice(0, 28)}`, two.element);
    }

    walk(document.body);
    lines.sort((a, b) => a.box.top - b.box.top);
    lines.forEach((line, i) => {
      for (let j = i + 1; j < lines.length && lines[j].box.top < line.box.bottom; j += 1) compare(line, lines[j]);
    });
    for (const box of [document.documentElement, document.querySelector("[data-testid=stMain]")]) {
      if (box && box.scrollWidth > box.clientWidth) found.add(`the page moves sideways: ${box.scrollWidth} > ${box.clientWidth}`);
    }
    return [...found].sort();
  };
})();
