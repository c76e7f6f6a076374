// The bar over the graphs: where in time they are, and how far they look; the same by keys.

import { button, fill, h } from "./dom.js";
import { SPANS } from "./axis.js";
import { moment } from "./format.js";

/** @typedef {import("./axis.js").Axis} Axis */

/**
 * @param {Axis} axis
 * @param {AbortSignal} signal
 */
export function timeBar(axis, signal) {
  const live = button("", () => (axis.isLive ? axis.pause() : axis.now()), { id: "pause" });
  const spans = h("select", {
    "aria-label": "Time shown",
    onchange: () => spans.value && axis.setSpan(Number(spans.value)),
  });
  const about = h("span", { class: "hint" });
  const show = () => {
    fill(live, axis.isLive ? "Pause" : "Back to now");
    const known = SPANS.some(([s]) => s === axis.span);
    fill(
      spans,
      ...SPANS.map(([s, text]) => h("option", { value: String(s), selected: s === axis.span }, text)),
      known ? null : h("option", { value: "", selected: true }, `${axis.span} s`),
    );
    const { from, to } = axis.view();
    fill(about, axis.isLive ? "live" : `${moment(from)} to ${moment(to)}`);
  };
  axis.addEventListener("change", show, { signal });
  show();
  return h(
    "div",
    { class: "toolbar", role: "toolbar", "aria-label": "Time" },
    live,
    button("\u2190", () => axis.pan(-axis.span / 2), { "aria-label": "Earlier", title: "Earlier (,)" }),
    button("\u2192", () => axis.pan(axis.span / 2), { "aria-label": "Later", title: "Later (.)" }),
    button("+", () => axis.zoom(0.5), { "aria-label": "Closer", title: "Closer (+)" }),
    button("\u2212", () => axis.zoom(2), { "aria-label": "Farther", title: "Farther (-)" }),
    spans,
    about,
  );
}

/**
 * @param {KeyboardEvent} event
 * @param {Axis} axis
 */
export function shortcut(event, axis) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.altKey || event.metaKey || target.closest("input, select, textarea, dialog")) return;
  const act = {
    p: () => (axis.isLive ? axis.pause() : axis.now()),
    n: () => axis.now(),
    ",": () => axis.pan(-axis.span / 2),
    ".": () => axis.pan(axis.span / 2),
    "+": () => axis.zoom(0.5),
    "=": () => axis.zoom(0.5),
    "-": () => axis.zoom(2),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}
