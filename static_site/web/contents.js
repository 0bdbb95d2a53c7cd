// The table of contents: what it leads to shall open without a network, too.

import { keepSite } from "./page.js";

keepSite();
