// The one axis of time of all graphs: what it shows, and whether it follows the present.
//
//   end = null   it follows: the newest sample is at the right edge
//   end = N      it stands: the second N is
//
// A span decides how fine samples are: seconds to an hour and a half, minutes to three days, hours beyond.

export const SPANS = [
  [60, "Minute"],
  [300, "5 minutes"],
  [900, "15 minutes"],
  [3600, "Hour"],
  [86400, "Day"],
  [604800, "Week"],
  [2678400, "Month"],
];

const SHORTEST = 10;
const LONGEST = 3 * 2678400;

export class Axis extends EventTarget {
  constructor() {
    super();
    this.span = 300;
    /** @type {number | null} */
    this.end = null;
    /** The newest second of which there are samples. */
    this.newest = Math.floor(Date.now() / 1000) - 2;
    /** @type {number | null} the second under the pointer, on all graphs */
    this.pointed = null;
  }

  get isLive() {
    return this.end === null;
  }

  /** @returns {{from: number, to: number, step: number}} seconds, both included */
  view() {
    const step = this.span <= 5400 ? 1 : this.span <= 3 * 86400 ? 60 : 3600;
    const to = this.end ?? this.newest;
    return { from: to - this.span + 1, to, step };
  }

  /** @param {number} second */
  tick(second) {
    if (second <= this.newest) return;
    this.newest = second;
    this.tell("tick");
  }

  pause() {
    this.end = this.newest;
    this.tell("change");
  }

  now() {
    this.end = null;
    this.tell("change");
  }

  /** @param {number} span */
  setSpan(span) {
    this.span = Math.round(Math.min(LONGEST, Math.max(SHORTEST, span)));
    this.tell("change");
  }

  /**
   * @param {number} factor below 1: closer
   * @param {number} [at] the second that stays where it is
   */
  zoom(factor, at) {
    const { from, to } = this.view();
    const span = Math.min(LONGEST, Math.max(SHORTEST, this.span * factor));
    if (this.end !== null) {
      const fixed = at ?? (from + to) / 2;
      this.end = Math.min(this.newest, Math.round(fixed + (to - fixed) * (span / this.span)));
    }
    this.setSpan(span);
  }

  /** @param {number} seconds to the past when negative */
  pan(seconds) {
    const end = (this.end ?? this.newest) + Math.round(seconds);
    this.end = end >= this.newest ? null : end;
    this.tell("change");
  }

  /** @param {number | null} second */
  point(second) {
    if (second === this.pointed) return;
    this.pointed = second;
    this.tell("point");
  }

  /** @param {string} what */
  tell(what) {
    this.dispatchEvent(new Event(what));
  }
}

/**
 * Places and words for the ticks of an axis.
 * @param {{from: number, to: number}} view
 * @param {number} width pixels
 * @returns {{at: number, text: string}[]}
 */
export function ticks(view, width) {
  const steps = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 1209600,
  ];
  const span = view.to - view.from + 1;
  const wanted = (span / Math.max(1, width)) * 90;
  const step = steps.find((s) => s >= wanted) ?? 2678400;
  const zone = new Date(view.to * 1000).getTimezoneOffset() * 60;
  const all = [];
  for (let at = Math.ceil((view.from - zone) / step) * step + zone; at <= view.to; at += step) {
    const date = new Date(at * 1000);
    const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
    const day = `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
    const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
    all.push({
      at,
      text:
        step >= 86400
          ? day
          : step >= 21600
            ? `${day} ${clock}`
            : step >= 60
              ? clock
              : `${clock}:${two(date.getSeconds())}`,
    });
  }
  return all;
}
