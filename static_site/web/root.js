// The page at the root leads to the reader's language.

const known = document.currentScript.dataset.languages.split(" ");
const near = (tag) => known.find((each) => each === tag) ?? known.find((each) => each.split("-")[0] === tag.split("-")[0]);
location.replace(`${navigator.languages.map(near).find(Boolean) ?? "en"}/index.html`);
