// What the reader's browser keeps: answers, sentences, and the chapters that were visited. It stays there.

/** What is kept under a name; null where there is nothing, or storage is disabled. */
export function readStored(name) {
  try {
    return JSON.parse(localStorage.getItem(name));
  } catch {
    return null;
  }
}

/** Keep something, if the browser does: it is optional everywhere. */
export function store(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // storage is disabled
  }
}

const VISITED = "atlas.seen";

/** Names of visited chapters, the latest last. */
export function readVisited() {
  const names = readStored(VISITED);
  return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
}

export const addVisited = (name) => store(VISITED, [...readVisited().filter((each) => each !== name), name]);

export const clearVisited = () => store(VISITED, []);
