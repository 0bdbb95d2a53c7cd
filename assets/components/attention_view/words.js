// Words come from Python as templates; tokens are untrusted text and only become text nodes.

/** Templates filled as text or as nodes, and weights written the way the language writes numbers. */
export function makeWords(templates, language) {
  const plain = new Intl.NumberFormat(language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const small = new Intl.NumberFormat(language, { minimumSignificantDigits: 2, maximumSignificantDigits: 2 });
  const short = new Intl.NumberFormat(language);

  /** Two decimals, or two digits where that would hide a small weight; a masked weight is a bare 0. */
  function number(value) {
    if (value === 0) return "0";
    if (value >= 0.0995) return plain.format(value);
    if (value >= 0.0001) return small.format(value);
    const exponent = Math.floor(Math.log10(value));
    const superscript = [...String(-exponent)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
    return `${small.format(value / 10 ** exponent)} × 10⁻${superscript}`;
  }

  /** Powers of ten in words: screen readers pass over superscripts. */
  const spoken = (sentence) =>
    sentence.replace(/ × 10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)/g, (_, digits) => {
      const exponent = `−${[...digits].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(digit)).join("")}`;
      return ` ${templates.power_times} ${templates.power.replace("{exponent}", exponent)}`;
    });

  const plurals = new Intl.PluralRules(language);

  // Words that go by a number, "{count:head|heads}", take their form first; as in ui/text/words.py.
  const inNumber = (template, values) =>
    template.replace(/\{(\w+):([^{}|]*(?:\|[^{}|]*)+)\}/g, (_, key, forms) =>
      forms.split("|").at(plurals.select(Number(values[key])) === "one" ? 0 : -1),
    );

  // One pass over the template: a token that reads "{value}" stays a token.
  const parts = (name, values) => inNumber(templates[name], values).split(/\{(\w+)\}/);

  const text = (name, values = {}) =>
    parts(name, values)
      .map((part, i) => (i % 2 ? values[part] : part))
      .join("");

  /** Replace an element's children by the template, each value in a tag of its own ("b", "bdi"). */
  function into(element, name, values = {}, tag = "b") {
    const nodes = parts(name, values).map((part, i) => {
      if (i % 2 === 0) return document.createTextNode(part);
      const node = document.createElement(tag);
      node.textContent = values[part];
      return node;
    });
    element.replaceChildren(...nodes);
  }

  /** Names in a row, as the language separates them. */
  const row = (names) => names.reduce((before, next) => text("row", { before, next }));

  /** A difference, with its sign. */
  const signed = (value) => (value > 0 ? `+${number(value)}` : value < 0 ? `−${number(-value)}` : number(0));
  const has = (name) => name in templates;
  const decimal = plain.formatToParts(0.5).find(({ type }) => type === "decimal").value;

  return { text, row, into, has, spoken, decimal, number, signed, plain: (value) => plain.format(value), tick: (value) => short.format(value) };
}

const SHOWN_INSTEAD = { "\n": "⏎", "\r": "⏎", "\t": "⇥" };

/** A token as it can be seen: control characters as signs, nothing-but-space as an open box. */
export function visible(token) {
  if (!token.replace(/[\s\u200b-\u200f\u2060\ufeff]/g, "")) return token ? "␣" : "∅";
  // Direction overrides would turn the text around them; the token's own letters keep their direction.
  return token.replace(/[\u0000-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g, (c) => SHOWN_INSTEAD[c] ?? "·");
}

const graphemes =
  typeof Intl.Segmenter === "function"
    ? ((segmenter) => (text) => Array.from(segmenter.segment(text), (part) => part.segment))(new Intl.Segmenter())
    : (text) => Array.from(text);

/** The longest beginning of a text, with an ellipsis, that measures at most `width`. */
export function shorten(text, width, measure) {
  if (measure(text) <= width) return text;
  const letters = graphemes(text.slice(0, 400));
  let low = 0;
  let high = letters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(letters.slice(0, middle).join("") + "…") <= width) low = middle;
    else high = middle - 1;
  }
  return letters.slice(0, low).join("") + "…";
}
