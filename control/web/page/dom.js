// Elements made by hand: `h("p", {class: "note"}, "text", otherElement)`.
//
// Strings become text nodes and nothing else, so that what others named is shown as they named it. There is no way from
// a string to markup here; the page's policy (trusted types) forbids one anywhere.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [attributes] `on…` are listeners, `class` and `data-…` attributes, others properties
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-") && name !== "list" && name !== "form") {
      /** @type {any} */ (element)[name] = value;
    } else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...nodes(children));
  return element;
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  return children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/**
 * Puts these in place of everything in an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/**
 * A name that somebody chose: isolated, so that right-to-left marks in it end with it, and whole on hover.
 * @param {string} text
 */
export function name(text) {
  return h("bdi", { class: "name", title: text }, visible(text));
}

/**
 * Characters that would not be seen, or would turn what follows, are shown by their number.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (c) => {
    return `\u2039U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u203a`;
  });
}

/**
 * A table whose rows are lists of cells. On a narrow screen each row becomes a block, its cells named by the heads.
 * @param {string} caption read out, not shown
 * @param {string[]} heads; one that ends in ">" is of numbers
 * @param {Child[][]} rows
 * @param {string} [empty]
 */
export function table(caption, heads, rows, empty = "None.") {
  if (rows.length === 0) return h("p", { class: "empty" }, empty);
  const number = heads.map((head) => head.endsWith(">"));
  const words = heads.map((head) => head.replace(/>$/, ""));
  const cell = (/** @type {Child} */ child, /** @type {number} */ i) =>
    h("td", { role: "cell", class: number[i] ? "number" : undefined, "data-head": words[i] }, child);
  return h(
    "table",
    // Said here, since a narrow screen shows it as blocks.
    { role: "table" },
    h("caption", {}, caption),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        words.map((word, i) => h("th", { scope: "col", class: number[i] ? "number" : undefined }, word)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row) => h("tr", { role: "row" }, row.map(cell))),
    ),
  );
}

/**
 * @param {string} label
 * @param {() => void} act
 * @param {Record<string, any>} [more]
 */
export function button(label, act, more = {}) {
  return h("button", { type: "button", onclick: act, ...more }, label);
}

/**
 * @param {string} text
 * @param {string} to a place in the page
 */
export function link(text, to) {
  return h("a", { href: `#${to}`, class: "name", title: text }, h("bdi", {}, visible(text)));
}

/**
 * A bar of what is taken.
 * @param {number} part
 * @param {number} whole
 * @param {string} label
 */
export function bar(part, whole, label) {
  const share = whole > 0 ? Math.min(1, part / whole) : 0;
  const inner = h("span", { class: share > 0.9 ? "filled alarm" : "filled" });
  inner.style.width = `${(share * 100).toFixed(1)}%`;
  return h("span", { class: "bar", role: "img", "aria-label": `${label}: ${Math.round(share * 100)} %` }, inner);
}

/**
 * A state in a word, with a mark that is not only a colour.
 * @param {"good" | "warn" | "bad" | "idle"} kind
 * @param {string} word
 */
export function state(kind, word) {
  const mark = { good: "\u25cf", warn: "\u25b2", bad: "\u25a0", idle: "\u25cb" }[kind];
  return h("span", { class: `state ${kind}` }, h("span", { "aria-hidden": "true" }, mark), ` ${word}`);
}
