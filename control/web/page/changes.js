// Changes of settings, as marks on graphs and as a list: what was set, what the figures say of it, and the way back.
//
//   GET …/changes, every few seconds ──▶ Changes.all ──▶ each graph: a dashed line at its second, a line of words when pointed at

import { h, name, table, visible } from "./dom.js";
import { get } from "./api.js";
import { inUnit, moment, size } from "./format.js";
import { poll } from "./poll.js";

const ASKED_EVERY = 5000;
/** The last ones of a long ledger. */
const LISTED = 50;
/** Pixels from a mark within which it is pointed at. */
const NEAR = 6;

/**
 * @typedef {{dataset: string, unit: string, before: number, after: number, rivals: number, effect: boolean}} Figure
 * @typedef {{number: number, time: number, kind: string, subject: string, setting: string, before?: string | null,
 *   after?: string | null, inherited: boolean, command: string, verdict: string, until: number, with: number,
 *   moments: number, figures: Figure[], way_back: string}} Change
 * @typedef {{x: number, y: number, width: number, height: number}} Box
 * @typedef {{from: number, to: number, step: number}} View
 */

export class Changes extends EventTarget {
  constructor() {
    super();
    /** @type {Change[]} the oldest first */
    this.all = [];
  }

  /**
   * Asks as long as the page is looked at.
   * @param {AbortSignal} signal
   */
  follow(signal) {
    return poll(ASKED_EVERY, signal, async () => {
      this.all = await changes(signal);
      this.dispatchEvent(new Event("change"));
    });
  }

  /** @param {View} view */
  within({ from, to }) {
    return this.all.filter((change) => change.time >= from && change.time <= to);
  }
}

/**
 * @param {AbortSignal} signal
 * @returns {Promise<Change[]>}
 */
const changes = async (signal) => (await get("/api/analytics/v1/changes", signal)).changes;

/**
 * @param {View} view
 * @param {Box} box
 * @param {number} second
 */
const place = (view, box, second) => box.x + ((second - view.from) / (view.to - view.from + 1)) * box.width;

/**
 * A dashed line at each change, under a triangle that is full where an effect on this statistic was seen.
 * @param {CanvasRenderingContext2D} pen
 * @param {Box} box
 * @param {View} view
 * @param {Change[]} all
 * @param {string} statistic
 * @param {{text: string, surface: string}} colours
 */
export function drawMarks(pen, box, view, all, statistic, colours) {
  pen.save();
  pen.strokeStyle = colours.text;
  pen.lineWidth = 1;
  for (const change of all) {
    const x = Math.round(place(view, box, change.time)) + 0.5;
    pen.setLineDash([3, 3]);
    pen.globalAlpha = 0.75;
    pen.beginPath();
    pen.moveTo(x, box.y);
    pen.lineTo(x, box.y + box.height);
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    pen.beginPath();
    pen.moveTo(x - 5, box.y - 6);
    pen.lineTo(x + 5, box.y - 6);
    pen.lineTo(x, box.y + 2);
    pen.closePath();
    pen.fillStyle = figureOf(change, statistic)?.effect ? colours.text : colours.surface;
    pen.fill();
    pen.stroke();
  }
  pen.restore();
}

/**
 * The changes that are pointed at, by a place or by a second.
 * @param {Change[]} all
 * @param {View} view
 * @param {Box} box
 * @param {number | undefined} x
 * @param {number | null} second
 */
export function pointed(all, view, box, x, second) {
  return all.filter(
    (change) =>
      (x !== undefined && Math.abs(place(view, box, change.time) - x) <= NEAR) ||
      (second !== null && change.time >= second && change.time < second + view.step),
  );
}

/**
 * @param {Change} change
 * @param {string} statistic
 */
const figureOf = (change, statistic) => change.figures.find((figure) => figure.dataset === statistic);

/**
 * What was set: recordsize of tank/db: 128K → 16K
 * @param {Change} change
 */
export function what(change) {
  const of = change.subject ? ` of ${visible(change.subject)}` : "";
  return `${visible(change.setting)}${of}: ${value(change.before)} \u2192 ${value(change.after)}`;
}

/** @param {string | null | undefined} text an exact value: sizes are shown as people write them */
function value(text) {
  if (text === null || text === undefined) return "none";
  const bytes = /^\d+$/.test(text) ? Number(text) : NaN;
  return bytes >= 1024 && bytes % 1024 === 0 ? size(bytes) : visible(text);
}

/** @param {Figure} figure */
function difference(figure) {
  const gain = figure.before > 0 ? ((figure.after - figure.before) / figure.before) * 100 : NaN;
  const percent = Number.isNaN(gain) ? "" : ` (${gain < 0 ? "\u2212" : "+"}${Math.abs(gain).toFixed(1)} %)`;
  return `${inUnit(figure.before, figure.unit)} \u2192 ${inUnit(figure.after, figure.unit)}${percent}`;
}

/**
 * A change in words, for the graph of one statistic.
 * @param {Change} change
 * @param {string} statistic
 */
export function sentence(change, statistic) {
  const figure = figureOf(change, statistic);
  const told = figure ? `${difference(figure)}, ${sure(change, figure)}` : verdict(change);
  return `${moment(change.time)}  ${what(change)}.  ${told}`;
}

/**
 * @param {Change} change
 * @param {Figure} figure
 */
function sure(change, figure) {
  const by = `${figure.rivals} of ${change.moments} moments without a change`;
  return figure.effect ? `an effect: only ${by} differ as much` : `no effect seen: ${by} differ as much`;
}

/** @param {Change} change */
function verdict(change) {
  switch (change.verdict) {
    case "waiting":
      return "it is judged when 35 seconds have passed";
    case "mixed":
      return `it cannot be told from change ${change.with}`;
    case "short":
      return "not known: the load was not there long enough before it";
    case "compared":
      return change.figures.some((figure) => figure.effect) ? "" : "no effect seen";
    default:
      return "not known: nothing was under way";
  }
}

/**
 * The list of changes, the newest first, with what was seen of each.
 * @param {AbortSignal} signal
 */
export async function changesSection(signal) {
  const all = (await changes(signal)).slice(-LISTED).reverse();
  return h(
    "section",
    { "aria-labelledby": "a-changes" },
    h("h2", { id: "a-changes" }, "Changes of settings"),
    table(
      "Changes",
      ["Change>", "Time", "What was set", "Effect", "Way back"],
      all.map((change) => [
        change.number,
        moment(change.time),
        what(change),
        effects(change),
        change.way_back ? h("code", {}, name(change.way_back)) : "none",
      ]),
      "None yet. Each is marked on all graphs, with the figures before and after.",
    ),
  );
}

/** @param {Change} change */
function effects(change) {
  const seen = change.figures.filter((figure) => figure.effect);
  if (seen.length === 0) return verdict(change);
  return h(
    "ul",
    { class: "effects" },
    seen.map((figure) => h("li", {}, h("code", {}, name(figure.dataset)), ` ${difference(figure)}`)),
  );
}
