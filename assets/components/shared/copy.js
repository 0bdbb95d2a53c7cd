// Text for the clipboard.

import { element } from "./elements.js";

/** Whether it is copied now. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyOldWay(text);
  }
}

/** Where the page came over plain HTTP, browsers offer only this. */
function copyOldWay(text) {
  const field = element("textarea", "");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
