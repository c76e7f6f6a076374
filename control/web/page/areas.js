// Stacked areas: what was, split by the values of a breakdown; those in the list at the side are told apart, the rest is
// one area. Where pixels are fewer than samples, each column shows the average of its samples, and the highest as a line.

import { colour, theme } from "./palette.js";

/** @typedef {import("./series.js").Point} Point */

/**
 * The values of a stretch by what they amount to, greatest first.
 * @param {Point[]} points
 * @returns {{key: string, part: import("./series.js").Part, total: number}[]}
 */
export function ranked(points) {
  /** @type {Map<string, {key: string, part: any, total: number}>} */
  const all = new Map();
  for (const point of points) {
    for (const part of point.parts) {
      const own = all.get(part.key);
      if (own) own.total += part.value;
      else all.set(part.key, { key: part.key, part, total: part.value });
    }
  }
  return [...all.values()].sort((a, b) => b.total - a.total || (a.key < b.key ? -1 : 1));
}

/**
 * A round number that is not below.
 * @param {number} value
 * @param {boolean} binary
 * @returns {number}
 */
export function roof(value, binary) {
  if (value <= 0) return 1;
  if (binary && value >= 1024) {
    const unit = 1024 ** Math.floor(Math.log2(value) / 10);
    return roof(value / unit, false) * unit;
  }
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [1, 1.5, 2, 3, 4, 5, 6, 8, 10]) if (value <= step * power) return step * power;
  return 10 * power;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{x: number, y: number, width: number, height: number}} box
 * @param {{from: number, to: number, step: number}} view
 * @param {Point[]} points
 * @param {{key: string, index: number}[]} shown the values that are told apart, from the bottom up
 * @param {Set<string>} lit those that are highlighted; none: all are
 * @param {boolean} binary
 * @returns {{top: number, at: (x: number) => Point | undefined}}
 */
export function drawAreas(context, box, view, points, shown, lit, binary) {
  const span = view.to - view.from + 1;
  const columns = Math.max(1, Math.min(Math.floor(box.width), Math.ceil(span / view.step)));
  const layers = shown.length + 1;
  const sums = new Float64Array(columns * layers);
  const peaks = new Float64Array(columns);
  const counts = new Uint32Array(columns);
  const order = new Map(shown.map(({ key }, i) => [key, i]));
  for (const point of points) {
    const column = Math.min(columns - 1, Math.max(0, Math.floor(((point.at - view.from) * columns) / span)));
    counts[column] += 1;
    peaks[column] = Math.max(peaks[column], point.max ?? point.value);
    let rest = point.value;
    for (const part of point.parts) {
      const layer = order.get(part.key);
      if (layer === undefined) continue;
      sums[column * layers + layer] += part.value;
      rest -= part.value;
    }
    sums[column * layers + layers - 1] += Math.max(0, rest);
  }
  let highest = 0;
  for (let c = 0; c < columns; c += 1) {
    if (counts[c] === 0) continue;
    for (let l = 0; l < layers; l += 1) sums[c * layers + l] /= counts[c];
    highest = Math.max(highest, peaks[c]);
  }
  const top = roof(highest, binary);
  const colours = theme();
  const x = (/** @type {number} */ c) => box.x + (c / columns) * box.width;
  const y = (/** @type {number} */ v) => box.y + box.height - (v / top) * box.height;
  // A stretch without samples is a gap, not a slope.
  let c = 0;
  while (c < columns) {
    while (c < columns && counts[c] === 0) c += 1;
    const begin = c;
    while (c < columns && counts[c] > 0) c += 1;
    if (c > begin) run(begin, c);
  }
  /** @param {number} begin @param {number} end */
  function run(begin, end) {
    const below = new Float64Array(end - begin);
    for (let l = 0; l < layers; l += 1) {
      const isRest = l === layers - 1;
      const isLit = lit.size === 0 || (!isRest && lit.has(shown[l].key));
      context.beginPath();
      for (let i = begin; i < end; i += 1) {
        const v = below[i - begin] + sums[i * layers + l];
        context.lineTo(x(i), y(v));
        context.lineTo(x(i + 1), y(v));
      }
      for (let i = end - 1; i >= begin; i -= 1) {
        context.lineTo(x(i + 1), y(below[i - begin]));
        context.lineTo(x(i), y(below[i - begin]));
        below[i - begin] += sums[i * layers + l];
      }
      context.closePath();
      context.fillStyle = isRest && shown.length > 0 ? colours.soft : isRest ? colour(0) : colour(shown[l].index);
      context.globalAlpha = isLit ? (isRest && shown.length > 0 ? 0.45 : 0.85) : 0.13;
      context.fill();
    }
    context.globalAlpha = 1;
    context.beginPath();
    for (let i = begin; i < end; i += 1) {
      context.lineTo(x(i), y(peaks[i]));
      context.lineTo(x(i + 1), y(peaks[i]));
    }
    context.strokeStyle = colours.text;
    context.lineWidth = 0.75;
    context.globalAlpha = 0.5;
    context.stroke();
    context.globalAlpha = 1;
  }
  return { top, at: nearest(points, view, box) };
}

/**
 * @param {Point[]} points
 * @param {{from: number, to: number, step: number}} view
 * @param {{x: number, width: number}} box
 */
export function nearest(points, view, box) {
  return (/** @type {number} */ px) => {
    const second = view.from + ((px - box.x) / box.width) * (view.to - view.from + 1);
    const wanted = Math.floor(second / view.step) * view.step;
    let low = 0;
    let high = points.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (points[middle].at <= wanted) low = middle;
      else high = middle - 1;
    }
    const found = points[low];
    return found && found.at <= wanted && wanted - found.at < view.step * 2 ? found : undefined;
  };
}
