// Heat maps: x is time, y a bucket, darkness how much fell into it then. The outliers at the top can be dropped: one slow
// request among a million would else press all others into one row.

import { between, grid } from "./buckets.js";
import { isDark, ramp, theme } from "./palette.js";

/**
 * @typedef {import("./series.js").Point} Point
 * @typedef {import("./buckets.js").Row} Row
 * @typedef {import("./buckets.js").Grid} Grid
 */

/**
 * The rows of a stretch from the lowest bucket to the one below which all but so much of everything lies.
 * @param {Point[]} points
 * @param {number} dropped 0 to 1
 * @param {string} by the breakdown
 * @returns {{rows: Row[], hidden: number, grid: Grid}} a row for every bucket between; `hidden` is a share
 */
export function rows(points, dropped, by) {
  const parts = points.flatMap((point) => point.parts.filter((part) => part.from !== undefined));
  const own = grid(by, parts);
  /** @type {Map<number, Row & {total: number}>} */
  const all = new Map();
  let total = 0;
  for (const part of parts) {
    const bucket = own.at(part.from ?? 0);
    const row = all.get(bucket.from) ?? { ...bucket, key: part.key, total: 0 };
    row.total += part.value;
    total += part.value;
    all.set(bucket.from, row);
  }
  const sorted = [...all.values()].sort((a, b) => a.from - b.from);
  let above = 0;
  let hidden = 0;
  while (sorted.length > 1 && above + sorted[sorted.length - 1].total <= total * dropped) {
    above += sorted.pop()?.total ?? 0;
    hidden = above / total;
  }
  if (sorted.length === 0) return { rows: [], hidden, grid: own };
  const lines = between(own, sorted[0].from, sorted[sorted.length - 1].from);
  return { rows: lines.map((row) => all.get(row.from) ?? row), hidden, grid: own };
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{x: number, y: number, width: number, height: number}} box
 * @param {{from: number, to: number, step: number}} view
 * @param {Point[]} points
 * @param {Row[]} lines from below
 * @param {Grid} own that of the lines
 * @param {Set<string>} lit keys of rows that are marked
 */
export function drawHeat(context, box, view, points, lines, own, lit) {
  const span = view.to - view.from + 1;
  const columns = Math.max(1, Math.min(Math.floor(box.width / 2), Math.ceil(span / view.step)));
  const height = Math.max(1, lines.length);
  const cells = new Float64Array(columns * height);
  const place = new Map(lines.map((row, i) => [row.from, i]));
  for (const point of points) {
    const column = Math.min(columns - 1, Math.max(0, Math.floor(((point.at - view.from) * columns) / span)));
    for (const part of point.parts) {
      const row = part.from === undefined ? undefined : place.get(own.at(part.from).from);
      if (row !== undefined) cells[column * height + row] += part.value;
    }
  }
  let most = 0;
  for (const value of cells) most = Math.max(most, value);
  const shades = ramp(isDark());
  const colours = theme();
  const [w, rowHeight] = [box.width / columns, box.height / height];
  for (let c = 0; c < columns; c += 1) {
    for (let r = 0; r < height; r += 1) {
      const value = cells[c * height + r];
      if (value === 0) continue;
      // The root lets rare cells be seen beside full ones; none that has something is white.
      const shade = Math.round(38 + 217 * Math.sqrt(value / most));
      context.fillStyle = `rgb(${shades[shade * 3]} ${shades[shade * 3 + 1]} ${shades[shade * 3 + 2]})`;
      const left = Math.floor(box.x + c * w);
      const top = Math.floor(box.y + box.height - (r + 1) * rowHeight);
      const right = Math.floor(box.x + (c + 1) * w);
      const bottom = Math.floor(box.y + box.height - r * rowHeight);
      context.fillRect(left, top, Math.max(1, right - left), Math.max(1, bottom - top));
    }
  }
  context.strokeStyle = colours.focus;
  context.lineWidth = 2;
  lines.forEach((row, r) => {
    if (row.key && lit.has(row.key))
      context.strokeRect(box.x + 1, box.y + box.height - (r + 1) * rowHeight, box.width - 2, rowHeight);
  });
  return { rowAt: (/** @type {number} */ y) => lines[Math.floor(((box.y + box.height - y) / box.height) * height)] };
}
