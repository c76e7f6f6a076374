// Values that are paths, as a tree: what a pool, a project or a directory holds together, one level at a time, as a pie
// and a list. What is chosen in it is gone into; the way back is the line above.
//
//   tank/db:/var/redo  30        tank ▸ db:            var   70     redo  30
//   tank/db:/var/data  40   ─▶   at "tank", "db:"  ─▶  log   10     data  40     at "tank", "db:", "var"
//   tank/db:/log       10

import { colour, theme } from "./palette.js";

/** The breakdowns whose values are paths. */
export const PATHS = new Set(["file", "dataset", "disk"]);
/** So many slices are told apart; the rest is one. */
const SLICES = 9;
/** What a directory has by itself, beside what is in it. */
const ITSELF = ".";

/**
 * @typedef {{name: string, key: string, total: number, isLeaf: boolean}} Branch one that is a leaf has the value's own key
 * @typedef {{x: number, y: number, width: number, height: number}} Box
 */

/** @param {string} key */
export function steps(key) {
  const names = key.split("/").filter((name) => name !== "");
  return names.length > 0 ? names : [key];
}

/**
 * What is directly below a place, greatest first.
 * @param {{key: string, total: number}[]} ranks
 * @param {string[]} at
 * @returns {Branch[]}
 */
export function level(ranks, at) {
  /** @type {Map<string, Branch>} */
  const all = new Map();
  for (const { key, total } of ranks) {
    const names = steps(key);
    if (names.length < at.length || at.some((name, i) => names[i] !== name)) continue;
    const isOwn = names.length === at.length;
    const name = isOwn ? ITSELF : names[at.length];
    const isLeaf = isOwn || names.length === at.length + 1;
    const own = all.get(name);
    if (!own) all.set(name, { name, key: isLeaf ? key : "", total, isLeaf });
    else {
      own.total += total;
      own.isLeaf &&= isLeaf;
    }
  }
  return [...all.values()].sort((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1));
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {Box} box
 * @param {Branch[]} branches greatest first
 * @param {(branch: Branch) => number} colourOf
 * @param {(branch: Branch) => boolean} isLit
 * @returns {(x: number, y: number) => Branch | undefined} the slice at a place; of those that are one slice none
 */
export function drawPie(pen, box, branches, colourOf, isLit) {
  const whole = branches.reduce((sum, branch) => sum + branch.total, 0);
  const radius = Math.max(0, Math.min(box.width, box.height) / 2 - 4);
  const centre = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  const colours = theme();
  const anyLit = branches.some(isLit);
  const told = branches.slice(0, SLICES);
  const rest = branches.slice(SLICES).reduce((sum, branch) => sum + branch.total, 0);
  /** @type {{until: number, branch: Branch | undefined}[]} */
  const ends = [];
  let from = 0;
  const slice = (/** @type {number} */ total, /** @type {Branch | undefined} */ branch) => {
    const until = from + (whole > 0 ? total / whole : 0);
    const turn = (/** @type {number} */ part) => (part - 0.25) * 2 * Math.PI;
    pen.beginPath();
    pen.moveTo(centre.x, centre.y);
    pen.arc(centre.x, centre.y, radius, turn(from), turn(until));
    pen.closePath();
    pen.fillStyle = branch ? colour(colourOf(branch)) : colours.soft;
    pen.globalAlpha = anyLit && !(branch && isLit(branch)) ? 0.15 : branch ? 0.85 : 0.45;
    pen.fill();
    pen.globalAlpha = 1;
    // Neighbours are told apart by more than their colour.
    pen.strokeStyle = colours.surface;
    pen.lineWidth = 1.5;
    if (branches.length > 1) pen.stroke();
    ends.push({ until, branch });
    from = until;
  };
  for (const branch of told) slice(branch.total, branch);
  if (rest > 0) slice(rest, undefined);
  if (whole === 0) {
    pen.strokeStyle = colours.line;
    pen.beginPath();
    pen.arc(centre.x, centre.y, radius, 0, 2 * Math.PI);
    pen.stroke();
  }
  return (x, y) => {
    const [right, down] = [x - centre.x, y - centre.y];
    if (Math.hypot(right, down) > radius) return undefined;
    const part = (Math.atan2(down, right) / (2 * Math.PI) + 1.25) % 1;
    return ends.find(({ until }) => part < until)?.branch;
  };
}
