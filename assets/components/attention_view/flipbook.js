// A flip book: the view at every stop of a slider of the page (ui/widgets/flipbook.py), shown as soon as the thumb is
// there. Python hears of a slider when it is let go, and follows. The book is asked for once a reader reaches for it.

import { readFrame } from "../shared/frame.js";
import { partOf } from "./store.js";

/** Listen to the slider; what comes back stops that. */
export function listenToSlider(view) {
  const reach = ({ target }) => {
    if (view.reached || !sliderOf(view)?.contains(target)) return;
    view.reached = true;
    view.render();
  };
  const thumb = new MutationObserver(() => turnPage(view));
  thumb.observe(document.body, { subtree: true, attributes: true, attributeFilter: ["aria-valuetext"] });
  for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, reach);
  return () => {
    thumb.disconnect();
    for (const kind of ["pointerover", "focusin"]) document.removeEventListener(kind, reach);
  };
}

/** Where Streamlit draws the slider, as long as the view goes along with one. */
const sliderOf = ({ store }) => store.along && document.querySelector(`.st-key-${store.along}`);

/** The pages that are here, if they are of what Python shows: not of another run, say. */
const pagesOf = ({ pages, served }) => (pages.some(({ stamp }) => stamp === served) ? pages : []);

/** The page that the slider stands at, or undefined. */
function pageAt(view) {
  const pages = pagesOf(view);
  const thumb = pages.length && sliderOf(view)?.querySelector("input[type=range]");
  return thumb ? pages.findLast(({ value }) => value <= Number(thumb.value)) : undefined;
}

/** Whether the slider stands at another page than Python's last answer. */
export function isAhead(view) {
  const page = pageAt(view);
  return page !== undefined && page.stamp !== view.served;
}

/** Show what the slider stands at. */
export function turnPage(view) {
  const page = pageAt(view);
  if (page && page.stamp !== view.store.stamp) view.show(readFrame(page.bytes));
}

/** Ask for the book once a reader has reached for the slider, and open it when it is here. */
export function openFlipbook(view) {
  if (!view.store.along) view.pages = []; // a run that goes on has more of them later
  const book = view.reached && view.store.along && !pagesOf(view).length && partOf(view, "flipbook");
  if (book) {
    const { header, buffer, start } = readFrame(book.values);
    view.pages = header.pages.map(({ offset, length, ...page }) => ({ ...page, bytes: new Uint8Array(buffer, start + offset, length) }));
  }
  view.parts.root.dataset.pages = pagesOf(view).length;
}
