// A page that shows a component of the app with recorded data: the sentence of the index, the questions of the review.

import { data, keepSite, part } from "./page.js";

const parentElement = part("component").attachShadow({ mode: "open" });
parentElement.innerHTML = (await import(`./components/${data.component}/view.js`)).default;
const { default: show } = await import(`./components/${data.component}/main.js`);
show({ data: new TextEncoder().encode(JSON.stringify(data.shown)), parentElement });
document.documentElement.dataset.ready = "true";
keepSite(); // what the page leads to shall open without a network, too
