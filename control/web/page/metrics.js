// Device counters from /metrics, which is there whatever statistics are open.

/**
 * @typedef {{at: number, ops: number, bytes: number, waitNs: number}} Totals
 */

/**
 * @param {string} text in Prometheus's form
 * @returns {Totals}
 */
export function devices(text) {
  const total = { at: performance.now(), ops: 0, bytes: 0, waitNs: 0 };
  for (const line of text.split("\n")) {
    if (!line.startsWith("cenote_device_")) continue;
    const value = Number(line.slice(line.lastIndexOf(" ") + 1));
    if (line.startsWith("cenote_device_operations_total{")) total.ops += value;
    else if (line.startsWith("cenote_device_bytes_total{")) total.bytes += value;
    else if (line.startsWith("cenote_device_wait_seconds_sum{")) total.waitNs += value * 1e9;
  }
  return total;
}

/**
 * Rates between two readings; a device that left, or a daemon that began anew, makes no negative ones.
 * @param {Totals} before
 * @param {Totals} now
 */
export function deltas(before, now) {
  const seconds = Math.max(0.001, (now.at - before.at) / 1000);
  const ops = Math.max(0, now.ops - before.ops);
  return {
    ops: ops / seconds,
    bytes: Math.max(0, now.bytes - before.bytes) / seconds,
    wait: ops > 0 ? Math.max(0, now.waitNs - before.waitNs) / ops : 0,
  };
}
