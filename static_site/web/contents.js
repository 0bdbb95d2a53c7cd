// The table of contents, with a sentence to point at; what it leads to shall open without a network, too.

import showSentences from "./components/linked_sentences/main.js";
import { keepSite, readPage } from "./page.js";

const { data, part } = readPage();
const parentElement = part("sentences").attachShadow({ mode: "open" });
parentElement.innerHTML = part("markup").innerHTML;
showSentences({ data: new TextEncoder().encode(JSON.stringify(data.sentences)), parentElement });
document.documentElement.dataset.ready = "true";
keepSite();
