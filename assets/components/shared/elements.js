// Elements made here, text for the clipboard, and files that the page makes, handed to the reader.

/** An element with its class, its attributes, and what is in it: elements or texts. */
export function element(tag, className = "", attributes = {}, ...children) {
  const node = document.createElement(tag);
  node.className = className;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function button(className, text, click, attributes = {}) {
  const node = element("button", className, { type: "button", ...attributes }, text);
  node.addEventListener("click", click);
  return node;
}

const TYPED_IN = "input, textarea, select, [contenteditable], [role=textbox], [role=combobox], [role=dialog]";

/** Whether a key was pressed where it means something else: in a field, or in what `more` names. */
export const isTypedIn = (event, more = "") => event.composedPath().some((node) => node instanceof Element && node.matches(TYPED_IN + more));

/** A template with its values in place of "{name}". */
export const fillIn = (text, values = {}) => text.replace(/\{([\w-]+)\}/g, (whole, name) => values[name] ?? whole);

/** Give a box its hint, and the width (`--hint`, in ch) that shows it whole; a Chinese character is two wide. */
export function setHint(input, text) {
  input.placeholder = text;
  input.style.setProperty("--hint", `${Array.from(text).length + (text.match(/[\u2e80-\uffef]/g) ?? []).length}ch`);
}

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

export function saveFile(blob, name) {
  const link = element("a", "", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Text as XML takes it: most control characters are forbidden even when escaped, and tokens are strangers' text. */
export const escapeXml = (text) =>
  String(text)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "�")
    .replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
