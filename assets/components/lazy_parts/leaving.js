// On the way to another chapter no part of this one is requested: it would be drawn over the next one.

const WAY_OUT = '[data-testid="stPageLink"] a, [data-testid="stSidebarNavLink"]';
const LONGEST = 10000; // ms that a click may take to lead away

let clicked = -Infinity;
let from = "";

document.addEventListener(
  "click",
  (event) => {
    if (!event.target.closest?.(WAY_OUT) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    clicked = performance.now();
    from = location.pathname;
  },
  { capture: true },
);

/** Whether the chapter at this path is being left, or is left already. */
export const leaving = (path) =>
  location.pathname !== path || (path === from && performance.now() - clicked < LONGEST);
