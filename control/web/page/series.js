// What a page has of one dataset: points by their second, for one granularity at a time, a stretch without holes in what
// was asked for. A page that is open for a week holds no more than one that was just opened.

import { get, path } from "./api.js";

/**
 * @typedef {{key: string, from?: number, to?: number, value: number}} Part
 * @typedef {{at: number, value: number, min?: number, max?: number, parts: Part[]}} Point
 */

const HELD = 12000;
/** Of one question: a body of some megabytes at the most. */
const ASKED = 3600;
const WORDS = new Map([
  [1, "second"],
  [60, "minute"],
  [3600, "hour"],
]);

export class Series {
  /** @param {string} statistic */
  constructor(statistic) {
    this.statistic = statistic;
    this.step = 1;
    /** @type {Map<number, Point>} */
    this.points = new Map();
    this.from = 0;
    this.to = -1;
    /** @type {Promise<void>} */
    this.turn = Promise.resolve();
  }

  /**
   * Makes sure that this stretch is there, as far as the appliance has it.
   * @param {{from: number, to: number, step: number}} view
   * @param {AbortSignal} signal
   */
  need(view, signal) {
    this.turn = this.turn.then(() => (signal.aborted ? undefined : this.fetch(view, signal)));
    return this.turn;
  }

  /**
   * @param {{from: number, to: number, step: number}} view
   * @param {AbortSignal} signal
   */
  async fetch({ from, to, step }, signal) {
    const first = Math.floor(from / step) * step;
    if (step !== this.step || this.to < this.from || first > this.to + step || to < this.from - step) {
      this.step = step;
      this.points.clear();
      this.from = first;
      this.to = first - 1;
    }
    if (first < this.from) {
      await this.ask(first, this.from - 1, signal);
      this.from = first;
    }
    if (to > this.to) {
      await this.ask(this.to + 1, to, signal);
      // What is coarser than a second is asked for again until it is whole.
      this.to = step === 1 ? to : Math.max(this.to, Math.floor(to / step) * step - 1);
    }
    this.trim(first, to);
  }

  /**
   * @param {number} from
   * @param {number} to
   * @param {AbortSignal} signal
   */
  async ask(from, to, signal) {
    for (let at = from; at <= to; at += ASKED * this.step) {
      const seconds = Math.min(to - at + 1, ASKED * this.step);
      const where = path`/api/analytics/v1/datasets/${this.statistic}/data`;
      const answer = await get(`${where}?start=${at}&seconds=${seconds}&granularity=${WORDS.get(this.step)}`, signal);
      for (const sample of answer.data) this.put(sample);
    }
  }

  /** @param {any} sample as the API tells it */
  put(sample) {
    const { value, data = [], min, max } = sample.data;
    this.points.set(sample.sample, { at: sample.sample, value, min, max, parts: data });
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  trim(from, to) {
    if (this.points.size <= HELD) return;
    const room = (to - from) / 2;
    const [low, high] = [from - room, to + room];
    for (const at of this.points.keys()) if (at < low || at > high) this.points.delete(at);
    this.from = Math.max(this.from, Math.ceil(low / this.step) * this.step);
    this.to = Math.min(this.to, Math.floor(high));
  }

  /**
   * @param {{from: number, to: number}} view
   * @returns {Point[]} in order of time
   */
  within({ from, to }) {
    const all = [];
    for (let at = Math.floor(from / this.step) * this.step; at <= to; at += this.step) {
      const point = this.points.get(at);
      if (point) all.push(point);
    }
    return all;
  }
}
