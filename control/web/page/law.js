// Three numbers, one law: operations, bandwidth and response time of what is open, and what is outstanding by them.

import { h } from "./dom.js";
import { count, size, time } from "./format.js";

/** @typedef {import("./axis.js").Axis} Axis */
/** @typedef {import("./panel.js").Panel} Panel */

/**
 * Operations, bandwidth and response time stand together wherever they are open, with what Little's law makes of them.
 * @param {Panel[]} panels
 * @param {Axis} axis
 */
export function lawLines(panels, axis) {
  const view = axis.view();
  const average = (/** @type {string} */ statistic) => {
    const points = panels.find((p) => p.dataset.name === statistic)?.series?.within(view) ?? [];
    return points.length ? points.reduce((sum, p) => sum + p.value, 0) / points.length : null;
  };
  const protocols = [
    ...new Set(
      panels
        .map((p) => p.dataset.name)
        .filter((n) => /^\w+\.ops\[latency\]$/.test(n))
        .map((n) => n.split(".")[0]),
    ),
  ];
  return protocols.map((base) => {
    const points = panels.find((p) => p.dataset.name === `${base}.ops[latency]`)?.series?.within(view) ?? [];
    let [sum, n] = [0, 0];
    for (const point of points)
      for (const part of point.parts)
        if (part.from !== undefined) {
          sum += part.value * ((part.from + (part.to ?? part.from)) / 2);
          n += part.value;
        }
    if (n === 0) return null;
    const ops = n / points.length;
    const wait = sum / n;
    const bytes = average(`${base}.bytes`);
    const transfer = bytes === null ? "" : `, ${size(bytes)}/s in transfers of ${size(bytes / ops)}`;
    return h(
      "p",
      { class: "law" },
      h("strong", {}, base),
      `  ${count(ops)} operations/s${transfer}, ${time(wait)} each: ${((ops * wait) / 1e9).toFixed(2)} outstanding by Little\u2019s law`,
    );
  });
}
