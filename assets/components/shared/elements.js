// Elements made here.

/** An element with its class and attributes. */
export function element(tag, className, attributes = {}) {
  const node = document.createElement(tag);
  node.className = className;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/** Give a box its hint, and the width (`--hint`, in ch) that shows it whole; a Chinese character is two wide. */
export function setHint(input, text) {
  input.placeholder = text;
  input.style.setProperty("--hint", `${Array.from(text).length + (text.match(/[\u2e80-\uffef]/g) ?? []).length}ch`);
}
