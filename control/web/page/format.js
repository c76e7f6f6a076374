// Numbers as storage people write them: bytes by 1,024, operations by 1,000, times in the unit that fits.

const UNITS = ["", "K", "M", "G", "T", "P", "E"];

/**
 * 1536 is 1.50K, as `zfs list` writes it.
 * @param {number} bytes
 */
export function size(bytes) {
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  if (unit === 0) return `${Math.round(value)}B`;
  return `${digits(value)}${UNITS[unit]}`;
}

/** @param {number} value */
function digits(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1024) return String(value);
  const places = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(places);
}

/**
 * 15234 is 15.2k.
 * @param {number} value
 */
export function count(value) {
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  if (magnitude < 1000) return Number.isInteger(value) ? String(value) : digits(value);
  const power = Math.min(4, Math.floor(Math.log10(magnitude) / 3));
  return `${digits(value / 1000 ** power)}${["", "k", "M", "G", "T"][power]}`;
}

/** @param {number} ns nanoseconds */
export function time(ns) {
  if (ns === 0) return "0";
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${digits(ns / 1e3)} \u00b5s`;
  if (ns < 1e9) return `${digits(ns / 1e6)} ms`;
  return `${digits(ns / 1e9)} s`;
}

/**
 * A value in the unit of a statistic, as the API names it.
 * @param {number} value
 * @param {string} unit
 */
export function inUnit(value, unit) {
  switch (unit.toLowerCase()) {
    case "bytes/s":
      return `${size(value)}/s`;
    case "bytes":
      return size(value);
    case "percent":
      return `${digits(value)} %`;
    case "nanoseconds":
      return time(value);
    case "operations/s":
      return `${count(value)}/s`;
    default:
      return count(value);
  }
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

/** @param {number} seconds since 1970 */
export function moment(seconds) {
  const at = new Date(seconds * 1000);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/**
 * "16K", "1.5 T", "256g" in bytes; null when it is none.
 * @param {string} text
 */
export function parseSize(text) {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([kmgtpe]?)(?:i?b)?\s*$/i.exec(text);
  if (!match) return null;
  const power = match[2] ? UNITS.indexOf(match[2].toUpperCase()) : 0;
  return Math.round(Number(match[1]) * 1024 ** power);
}
