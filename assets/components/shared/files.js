// Files that the page makes, handed to the reader.

import { element } from "./elements.js";

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
