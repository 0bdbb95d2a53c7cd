// The controls of a page: what they are set to stands in the address, so that a link shows it again, and in the link to the app.

/**
 * Bind the page's form; every control is a range or a select whose name is that of the app's control.
 *
 * @param onChange called with the values by name, at once and at each change; may be async
 * @param limits called with the values before each `onChange`, to give {name: {max, step}} of ranges that depend on others
 * @param formats how the value of a range is written beside its label, by name; as a number unless given
 */
export function bindControls(page, onChange, { limits = () => ({}), formats = {} } = {}) {
  const form = page.part("form");
  const fields = [...form.elements].filter(({ name }) => name);
  const initial = Object.fromEntries(fields.map(({ name, value }) => [name, value]));
  const valueOf = (field) => (field.type === "range" ? Number(field.value) : field.value);
  const values = () => Object.fromEntries(fields.map((field) => [field.name, valueOf(field)]));

  /** Values that a control does not have are left out: a range keeps within its ends, a select its option. */
  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const field of fields) {
      const value = given.get(field.name) ?? initial[field.name];
      if (field.type === "range") field.value = value.trim() && Number.isFinite(Number(value)) ? value : initial[field.name];
      else field.value = [...field.options].some((option) => option.value === value) ? value : initial[field.name];
    }
  }

  function show() {
    for (const [name, ends] of Object.entries(limits(values()))) Object.assign(form.elements[name], ends);
    const now = values();
    for (const field of fields.filter(({ type }) => type === "range")) {
      const text = (formats[field.name] ?? page.digits)(now[field.name]);
      field.parentElement.querySelector("output").textContent = text;
      field.setAttribute("aria-valuetext", text);
    }
    const changed = Object.entries(now).filter(([name, value]) => String(value) !== initial[name]);
    const link = page.part("in-app");
    if (link) link.search = new URLSearchParams(changed.map(([name, value]) => [`${page.data.prefix}-${name}`, value]));
    Promise.resolve(onChange(now)).then(() => (document.documentElement.dataset.ready = "true"));
    return changed;
  }

  form.addEventListener("input", () => {
    const hash = new URLSearchParams(show()).toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  const arrive = () => {
    read();
    show();
  };
  globalThis.addEventListener("hashchange", arrive);
  arrive();
  return { set: (name, value) => Object.assign(form.elements[name], { value }) && form.dispatchEvent(new Event("input")) };
}
