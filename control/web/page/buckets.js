// The buckets of a heat map's axis. The appliance tells only those that something fell into; the axis has those between too, so that
// distance on it is distance in value.
//
//   size, latency, writers   four for each power of two, as the appliance counts; the first goes down to zero
//   offset, utilization      of one width; an offset's doubles as larger ones are seen, and the widest of a stretch rules it
//
// Which buckets there are follows from the breakdown and the parts alone, so the axis, the cells and the list agree.

/**
 * @typedef {import("./series.js").Part} Part
 * @typedef {{from: number, to: number, key: string}} Row
 */

/** Where the first bucket ends that goes down to zero. */
const FIRST = new Map([
  ["size", 80],
  ["latency", 320],
  ["writers", 5],
]);
/** An axis of one row would say nothing of its height. */
const ROWS_MIN = 8;
const ROWS_MAX = 400;
const LABEL_HEIGHT = 16;

/** @typedef {{at: (value: number) => {from: number, to: number}, isRound: (row: Row, n: number) => boolean}} Grid */

/**
 * @param {string} by the breakdown
 * @param {Part[]} parts those of a whole stretch that have bounds
 * @returns {Grid}
 */
export function grid(by, parts) {
  const first = FIRST.get(by);
  if (first !== undefined) return { at: (value) => quarter(value, first), isRound: isPower };
  // The last bucket may have no end; the narrowest of the first is then as good.
  const widths = parts.map(({ from = 0, to = from }) => to - from).filter((width) => width > 0 && width < 2 ** 60);
  const width = widths.reduce((a, b) => Math.max(a, b), 1);
  return {
    at: (value) => {
      const from = Math.floor(value / width) * width;
      return { from, to: from + width };
    },
    isRound: (row, n) => (row.from / width) % n === 0,
  };
}

/**
 * @param {number} value
 * @param {number} first
 */
function quarter(value, first) {
  if (value < first) return { from: 0, to: first };
  const width = Math.max(1, power(value) / 4);
  const from = Math.floor(value / width) * width;
  return { from, to: from + width };
}

/**
 * The largest power of two that is not above.
 * @param {number} value at least 1
 */
function power(value) {
  const guess = 2 ** Math.floor(Math.log2(value));
  return guess > value ? guess / 2 : guess * 2 <= value ? guess * 2 : guess;
}

/** @type {Grid["isRound"]} */
function isPower(row, n) {
  return row.from === 0 ? n === 1 : power(row.from) === row.from && Math.log2(row.from) % n === 0;
}

/**
 * The rows from one bucket to another, both included, and around them as many as make an axis.
 * @param {Grid} grid
 * @param {number} low a value of the first bucket
 * @param {number} high a value of the last bucket
 * @returns {Row[]} without keys, from below
 */
export function between(grid, low, high) {
  const row = (/** @type {number} */ value) => ({ ...grid.at(value), key: "" });
  const all = [row(low)];
  const last = () => all[all.length - 1];
  while (last().to <= high && all.length < ROWS_MAX) all.push(row(last().to));
  while (all.length < ROWS_MIN) {
    all.push(row(last().to));
    if (all[0].from > 0) all.unshift(row(all[0].from - 1));
  }
  return all;
}

/**
 * Which rows are labelled: round values, as many as there is room for.
 * @param {Grid} grid
 * @param {Row[]} rows from below
 * @param {number} height of all of them, in pixels
 * @returns {number[]} indices
 */
export function labelled(grid, rows, height) {
  if (rows.length === 0) return [];
  const each = height / rows.length;
  for (let n = 1; n <= 1024; n *= 2) {
    const all = rows.flatMap((row, i) => (grid.isRound(row, n) ? [i] : []));
    const isWide = all.every((row, i) => i === 0 || (row - all[i - 1]) * each >= LABEL_HEIGHT);
    if (isWide && all.length > 0) return all;
  }
  return [0];
}
