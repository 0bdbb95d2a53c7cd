// Streamlit's own labels and hints, which it writes in English, in the language of the page.

import { readJson } from "../shared/mount.js";

const ATTRIBUTES = ["aria-label", "title", "placeholder", "alt"];
const NAMED = "{label}: {name}"; // how a label stands before what it is about
const OURS = ".stMarkdown, .katex, code, pre, svg, script, style, textarea, [role=option]"; // texts of the page itself

const state = { exact: {}, patterns: [], observer: null };

/** "{size} per file" as a pattern, with the translation that takes its parts. */
function patternOf([english, translation]) {
  const names = [...english.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const source = english.split(/\{\w+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return { pattern: new RegExp(`^${source.join("(.+)")}$`, "u"), names, translation };
}

/** The translation of one of Streamlit's labels, also of "Search: NAME"; any other text as it is. */
function translated(text, { exact, patterns }) {
  if (Object.hasOwn(exact, text)) return exact[text];
  if (exact.icon && text.endsWith(" icon")) return exact.icon; // its name is English too
  const [, label, name] = text.match(/^(.+?): (.+)$/su) ?? [];
  if (Object.hasOwn(exact, label)) return exact[NAMED].replace("{label}", exact[label]).replace("{name}", () => name);
  for (const { pattern, names, translation } of patterns) {
    const found = text.match(pattern);
    if (found) return names.reduce((all, name, i) => all.replace(`{${name}}`, () => found[i + 1]), translation);
  }
  return text;
}

/** Replace a label where it stands. The node remembers its English, for when the language changes. */
function replace(node, name, text, write) {
  const former = node.streamlitEnglish?.[name];
  const english = former?.shown === text ? former.english : text;
  const shown = translated(english, state);
  if (shown === text) return;
  (node.streamlitEnglish ??= {})[name] = { english, shown };
  write(shown);
}

function replaceAttribute(element, name) {
  if (element.hasAttribute(name)) replace(element, name, element.getAttribute(name), (text) => element.setAttribute(name, text));
}

function replaceText(node) {
  if (!node.data.trim() || node.parentElement?.closest(OURS)) return;
  replace(node, "text", node.data, (text) => (node.data = text));
}

function replaceIn(root) {
  if (root.nodeType === Node.TEXT_NODE) replaceText(root);
  if (root.nodeType !== Node.ELEMENT_NODE) return;
  const selector = ATTRIBUTES.map((name) => `[${name}]`).join();
  for (const element of [root, ...root.querySelectorAll(selector)]) for (const name of ATTRIBUTES) replaceAttribute(element, name);
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) replaceText(node);
}

function observe(records) {
  for (const { type, target, attributeName, addedNodes } of records) {
    if (type === "attributes") replaceAttribute(target, attributeName);
    else if (type === "characterData") replaceText(target);
    else for (const node of addedNodes) replaceIn(node);
  }
}

export default function ({ data }) {
  if (!data) return;
  const labels = Object.entries(readJson(data));
  const isFilled = ([english]) => english.includes("{") && english !== NAMED;
  state.exact = Object.fromEntries(labels.filter((label) => !isFilled(label)));
  state.patterns = labels.filter(isFilled).map(patternOf);
  if (state.observer || labels.length) replaceIn(document.body);
  if (state.observer || !labels.length) return;
  state.observer = new MutationObserver(observe);
  state.observer.observe(document.body, {
    subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ATTRIBUTES,
  });
}
