// Statistics as they are written: `iscsi.ops[op=read][latency>=10ms][lun]`; filters, then at most one breakdown, last.

/**
 * @typedef {{by: string, compare: string, operand: string}} Filter
 * @typedef {{base: string, filters: Filter[], breakdown: string | null}} Query
 */

/**
 * @param {string} text
 * @returns {Query}
 */
export function parse(text) {
  const open = text.indexOf("[");
  const base = open < 0 ? text : text.slice(0, open);
  /** @type {Filter[]} */
  const filters = [];
  /** @type {string | null} */
  let breakdown = null;
  let at = open < 0 ? text.length : open;
  while (text[at] === "[") {
    let inner = "";
    at += 1;
    while (at < text.length && text[at] !== "]") {
      if (text[at] === "\\" && at + 1 < text.length) at += 1;
      inner += text[at];
      at += 1;
    }
    at += 1;
    const match = /^([^=!<>]+)(>=|<=|!=|=|>|<)([\s\S]*)$/.exec(inner);
    if (match) filters.push({ by: match[1], compare: match[2], operand: match[3] });
    else breakdown = inner;
  }
  return { base, filters, breakdown };
}

/** @param {Query} query */
export function write({ base, filters, breakdown }) {
  const escape = (/** @type {string} */ text) => text.replace(/[\]\\]/g, "\\$&");
  const all = filters.map((f) => `[${f.by}${f.compare}${escape(f.operand)}]`).join("");
  return `${base}${all}${breakdown ? `[${breakdown}]` : ""}`;
}

/**
 * What is written for a part of a breakdown, so that the filter holds what the part holds.
 * @param {{key: string, from?: number}} part
 * @param {string} by
 */
export function operand(part, by) {
  if (part.from === undefined) return part.key;
  if (by === "latency" || by === "time" || by === "delay") return `${part.from}ns`;
  if (by === "utilization") return String(part.from);
  let value = part.from;
  let unit = 0;
  while (value !== 0 && value % 1024 === 0 && unit < 5) {
    value /= 1024;
    unit += 1;
  }
  return `${value}${["", "K", "M", "G", "T", "P"][unit]}`;
}

/**
 * The query for one part alone, further broken down.
 * @param {Query} query
 * @param {{key: string, from?: number}} part
 * @param {string | null} breakdown
 * @returns {Query}
 */
export function only(query, part, breakdown) {
  const by = query.breakdown ?? "";
  return { base: query.base, filters: [...query.filters, { by, compare: "=", operand: operand(part, by) }], breakdown };
}
