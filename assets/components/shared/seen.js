// The chapters a reader has been to, kept in their own browser and told to nobody.

const PLACE = "atlas.seen";

/** Names of chapters, the latest last. */
export function readSeen() {
  try {
    const names = JSON.parse(localStorage.getItem(PLACE));
    return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
  } catch {
    return []; // nothing kept, or a browser that keeps nothing
  }
}

export function noteSeen(name) {
  keep([...readSeen().filter((each) => each !== name), name]);
}

export const forgetSeen = () => keep([]);

function keep(names) {
  try {
    localStorage.setItem(PLACE, JSON.stringify(names));
  } catch {
    // it is a comfort, not a need
  }
}
