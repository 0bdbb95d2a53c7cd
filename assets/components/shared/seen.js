// The chapters a reader has visited. The record stays in the browser.

const KEY = "atlas.seen";

/** Names of chapters, the latest last. */
export function readVisited() {
  try {
    const names = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
  } catch {
    return []; // nothing stored, or storage is disabled
  }
}

export function addVisited(name) {
  store([...readVisited().filter((each) => each !== name), name]);
}

export const clearVisited = () => store([]);

function store(names) {
  try {
    localStorage.setItem(KEY, JSON.stringify(names));
  } catch {
    // storage is disabled: the marks are optional
  }
}
