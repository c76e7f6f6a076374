// What is asked again and again while it is looked at. A page that nobody sees asks nothing, so that its session ends by
// the time that was set for it.

/**
 * Does `work` at once and then every so often until the signal; a failure is told to it and does not end it.
 * @param {number} ms
 * @param {AbortSignal} signal
 * @param {() => Promise<void>} work
 * @param {(error: unknown) => void} [failed]
 */
export async function poll(ms, signal, work, failed = () => {}) {
  while (!signal.aborted) {
    if (!document.hidden) {
      try {
        await work();
      } catch (error) {
        if (!signal.aborted) failed(error);
      }
    }
    await rest(ms, signal);
  }
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function rest(ms, signal) {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const seen = () => document.hidden || end();
    const timer = setTimeout(end, ms);
    document.addEventListener("visibilitychange", seen);
    signal.addEventListener("abort", end);
  });
}
