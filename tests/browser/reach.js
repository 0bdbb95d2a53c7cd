// What of our own components no key reaches, or reaches without a name, a role or a ring around it.
// Evaluated twice: before the page's own scripts, to note who listens to a mouse; then, settled, to look.
(() => {
  const BY_MOUSE = ["click", "dblclick", "mousedown", "pointerdown"];
  const ROLES = { BUTTON: "button", A: "link", INPUT: "textbox", SELECT: "combobox", TEXTAREA: "textbox", SUMMARY: "button" };

  if (!globalThis.whatNoKeyReaches) noteListeners();

  function noteListeners() {
    const { prototype } = EventTarget;
    const { addEventListener } = prototype;
    prototype.addEventListener = function (name, ...rest) {
      if (this instanceof Element && BY_MOUSE.includes(name)) this.listensToMouse = true;
      return addEventListener.call(this, name, ...rest);
    };
  }

  globalThis.whatNoKeyReaches = () => {
    const found = new Set();
    const above = (element) => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host ?? null;
    const describe = (element) => element.outerHTML.replace(/\s+/g, " ").slice(0, 140);
    const inside = (element, selector) => {
      for (let node = element; node; node = above(node)) if (node.matches(selector)) return node;
      return null;
    };
    // A button among several of which one takes the Tab key, and arrows go on from there, counts as that one.
    const takesFocus = (element) => element.matches("button, a[href], input, select, textarea, summary, [tabindex]");
    const isReached = (element) => {
      for (let node = element; node && !node.matches(".here"); node = above(node)) if (takesFocus(node)) return true;
      return [...element.querySelectorAll("*")].some(takesFocus) || Boolean(element.labels?.length || inside(element, "label"));
    };

    function check(element) {
      if (element.matches(":disabled") || !element.checkVisibility({ visibilityProperty: true })) return;
      // Plotly's own: dragging a chart is what its buttons do; a click on one that tells has a control beside it.
      if (inside(element, ".js-plotly-plot") && !element.matches(".modebar-btn")) return;
      const pointed = element.listensToMouse || /pointer|crosshair|grab/.test(getComputedStyle(element).cursor);
      if (pointed && !isReached(element)) found.add(`no key reaches ${describe(element)}`);
      if (takesFocus(element)) checkFocused(element);
    }

    function checkFocused(element) {
      const role = element.getAttribute("role") ?? ROLES[element.tagName];
      if (!role || role === "none") found.add(`no role: ${describe(element)}`);
      const name = element.getAttribute("aria-label") || element.getAttribute("aria-labelledby") || element.textContent.trim() || element.title || element.labels?.length;
      if (!name) found.add(`no name: ${describe(element)}`);
      element.focus({ preventScroll: true });
      if (element.getRootNode().activeElement !== element) return; // a thumbnail's switch is reached by its head, say
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      if (outlineStyle === "none" || parseFloat(outlineWidth) < 1) found.add(`no ring around ${describe(element)}`);
      element.blur();
    }

    function walk(root, ours) {
      for (const element of root.querySelectorAll("*")) {
        if (ours || inside(element, ".here")) check(element);
        if (element.shadowRoot) walk(element.shadowRoot, false);
      }
    }

    walk(document, false);
    return [...found].sort();
  };
})();
