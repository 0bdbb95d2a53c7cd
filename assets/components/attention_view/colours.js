// Weights become viridis, everything else wears the theme.

// Ten points of viridis (van der Walt and Smith 2015), the colours of weights in every chapter.
const VIRIDIS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37],
];

/** 256 colours from 0 to 1, as bytes red, green, blue. */
const PALETTE = Uint8Array.from({ length: 256 * 3 }, (_, i) => {
  const at = (Math.floor(i / 3) / 255) * (VIRIDIS.length - 1);
  const low = Math.min(Math.floor(at), VIRIDIS.length - 2);
  const channel = i % 3;
  return Math.round(VIRIDIS[low][channel] + (at - low) * (VIRIDIS[low + 1][channel] - VIRIDIS[low][channel]));
});

/** Where a weight from 0 to 1 stands in the palette. The square root keeps small weights apart. */
const SCALES = { sqrt: (weight) => Math.round(Math.sqrt(Math.min(Math.max(weight, 0), 1)) * 255) };

const paletteCss = (step) => `rgb(${PALETTE[3 * step]}, ${PALETTE[3 * step + 1]}, ${PALETTE[3 * step + 2]})`;

/** White or near-black, whichever reads better on that step of the palette (they tie at luminance 0.2). */
const inkOn = (step) => (luminance(PALETTE.subarray(3 * step, 3 * step + 3)) > 0.2 ? "#14181a" : "#ffffff");

/** Give the style sheet what the theme holds as a list or does not say, and the canvas its colours. */
function readTheme(root) {
  const host = getComputedStyle(root);
  const [queries, keys] = host.getPropertyValue("--st-chart-categorical-colors").split(",");
  root.style.setProperty("--queries-base", queries);
  root.style.setProperty("--keys-base", keys);
  root.dataset.theme = luminance(rgbOf(host.getPropertyValue("--st-background-color"))) > 0.4 ? "light" : "dark";
  const style = getComputedStyle(root);
  const probe = document.createElement("span");
  root.append(probe);
  const colour = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const theme = {
    font: style.fontFamily,
    queries: colour("--queries"),
    keys: colour("--keys"),
    mark: colour("--keys-base"),
    paper: colour("--card"),
  };
  probe.remove();
  return theme;
}

/** The legend: the palette as wide as weights from 0 to 1 lie in it, with a few of them named. */
function drawScale(view) {
  const { parts, words, scale } = view;
  const stops = VIRIDIS.map((_, i) => paletteCss(Math.round((i / (VIRIDIS.length - 1)) * 255)));
  const bar = element("span", "bar");
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const ticks = [0, 0.1, 0.5, 1].map((weight) => {
    const tick = element("span", "tick");
    tick.style.left = `${(scale(weight) / 255) * 100}%`;
    tick.textContent = words.tick(weight);
    return tick;
  });
  bar.append(...ticks);
  parts.scale.replaceChildren(words.text("weight"), bar);
}
