// Links to heads in the page's text (ui/text/head_link.py): a click opens the head.

import { openHead } from "./actions.js";
import { groupOf, hasHead } from "./store.js";

const NAMED = /^#head=([a-z0-9_-]+)\.(\d+)\.(\d+)$/;

/** Listen to the whole page. Returns a function that stops. */
export function listenToHeadLinks(view) {
  const open = (event) => {
    const link = event.target.closest?.("a[href^='#head=']");
    const named = link && NAMED.exec(link.getAttribute("href"));
    const group = named && view.store.base && groupOf(view, 0, named[1]);
    const [layer, head] = named ? named.slice(2).map(Number) : [];
    if (!group || !hasHead(group, layer, head)) return;
    event.preventDefault();
    openHead(view, { group: group.id, layer, head });
    view.parts.root.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("click", open);
  return () => document.removeEventListener("click", open);
}
