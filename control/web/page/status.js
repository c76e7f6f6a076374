// Status: whether all is well, in words first; then space, activity and what happened last.

import { bar, fill, h, link, name, state, table, visible } from "./dom.js";
import { get } from "./api.js";
import { count, duration, moment, size, time } from "./format.js";
import { poll } from "./poll.js";
import { deltas, devices } from "./metrics.js";
import { Spark } from "./spark.js";

/** What the states of a pool mean to somebody who did not build it. */
const WORDS = {
  online: ["good", "Healthy", "All devices work, and no error is known."],
  degraded: ["warn", "Degraded", "A device is missing or fails; data is safe, and another failure may not be."],
  faulted: ["bad", "Faulted", "Too many devices are missing: the pool cannot be used until some return."],
  suspended: [
    "bad",
    "Suspended",
    "Devices failed while data was written; nothing is written until they return and the pool is cleared.",
  ],
  unavail: ["bad", "Unavailable", "The pool could not be opened."],
};

/** @param {string} status */
export function health(status) {
  const [kind, word, meaning] = WORDS[/** @type {keyof typeof WORDS} */ (status)] ?? ["warn", status, ""];
  return { kind: /** @type {"good" | "warn" | "bad"} */ (kind), word, meaning };
}

/**
 * @param {HTMLElement} main
 * @param {string[]} _
 * @param {AbortSignal} signal
 */
export function showStatus(main, _, signal) {
  const headline = h("p", { class: "headline", role: "status" }, "\u2026");
  const pools = h("div", { class: "cards" });
  const activity = h("div", { class: "cards three" });
  const services = h("div");
  const events = h("div");
  const facts = h("p", { class: "hint" });
  const sparks = {
    ops: new Spark("Operations", (v) => `${count(v)}/s`),
    bytes: new Spark("Bandwidth", (v) => `${size(v)}/s`),
    wait: new Spark("Response time", time),
  };
  const law = h("p", { class: "hint law" });
  fill(activity, sparks.ops.element, sparks.bytes.element, sparks.wait.element);
  fill(
    main,
    h("h1", { class: "visually-hidden" }, "Status"),
    headline,
    h("section", { "aria-labelledby": "s-pools" }, h("h2", { id: "s-pools" }, "Pools"), pools),
    h(
      "section",
      { "aria-labelledby": "s-activity" },
      h("h2", { id: "s-activity" }, "Activity of all devices"),
      activity,
      law,
    ),
    h(
      "div",
      { class: "columns" },
      h("section", { "aria-labelledby": "s-events" }, h("h2", { id: "s-events" }, "Recent events"), events),
      h("section", { "aria-labelledby": "s-services" }, h("h2", { id: "s-services" }, "Services"), services, facts),
    ),
  );
  /** @type {ReturnType<typeof devices> | null} */
  let before = null;
  const slow = async () => {
    const [p, e, s, v] = await Promise.all([
      get("/api/storage/v1/pools", signal),
      get("/api/storage/v1/events", signal),
      get("/api/service/v1/services", signal),
      get("/api/system/v1/version", signal),
    ]);
    const said = sentence(p.pools);
    // What is the same is not read out again.
    if (said.textContent !== headline.textContent) fill(headline, said);
    fill(
      pools,
      p.pools.length
        ? p.pools.map(card)
        : h(
            "p",
            { class: "empty" },
            "There is no pool. ",
            link("Make one under Maintenance", "maintenance/devices"),
            ".",
          ),
    );
    fill(
      events,
      table(
        "Recent events",
        ["Time", "What", "Of"],
        e.events.slice(-12).reverse().map(eventRow),
        "Nothing has happened since the appliance started.",
      ),
    );
    fill(services, table("Services", ["Service", "State", "Clients>", "Addresses"], s.services.map(serviceRow)));
    fill(
      facts,
      `${v.version.product} ${v.version.version}, up for ${duration(v.version.uptime)}, cache ${size(v.version.memory ?? 0)} at most.`,
    );
  };
  const fast = async () => {
    const now = devices(await get("/metrics", signal));
    if (before) {
      const d = deltas(before, now);
      sparks.ops.push(d.ops);
      sparks.bytes.push(d.bytes);
      sparks.wait.push(d.wait);
      const inFlight = d.ops * (d.wait / 1e9);
      fill(
        law,
        d.ops > 0
          ? `${count(d.ops)} operations/s \u00d7 ${time(d.wait)} = ` +
              `${inFlight.toFixed(inFlight < 10 ? 2 : 0)} outstanding on average (Little\u2019s law).`
          : "The devices are idle.",
      );
    }
    before = now;
  };
  const failed = (/** @type {unknown} */ error) => fill(headline, state("bad", /** @type {Error} */ (error).message));
  poll(1000, signal, fast);
  return poll(5000, signal, slow, failed);
}

/** @param {any[]} pools */
function sentence(pools) {
  const ill = pools.filter((pool) => pool.status !== "online" || pool.problems.length > 0);
  if (pools.length === 0) return state("idle", "The appliance is up and has no pool yet.");
  if (ill.length === 0)
    return state(
      "good",
      pools.length === 1 ? "All is well: the pool is healthy." : `All is well: all ${pools.length} pools are healthy.`,
    );
  const worst = ill.some((pool) => health(pool.status).kind === "bad") ? "bad" : "warn";
  const words = ill.map((pool) => `${visible(pool.name)} is ${health(pool.status).word.toLowerCase()}`).join(", ");
  return state(worst, `Something needs attention: ${words}.`);
}

/** @param {any} pool */
function card(pool) {
  const { kind, word, meaning } = health(pool.status);
  const usage = pool.usage;
  return h(
    "article",
    { class: "card" },
    h("h3", {}, name(pool.name), " ", state(kind, word)),
    usage
      ? [
          h("p", { class: "big" }, size(usage.available), h("small", {}, ` free of ${size(usage.total)}`)),
          bar(usage.used, usage.total, "Used"),
          h(
            "dl",
            { class: "facts" },
            pair("Data", size(usage.usage_data)),
            pair("Snapshots", size(usage.usage_snapshots)),
            pair("Reserved", size(usage.usage_reservation)),
            pair("Layout", pool.profile),
          ),
        ]
      : null,
    pool.problems.length
      ? h(
          "ul",
          { class: "problems" },
          pool.problems.map((/** @type {string} */ p) => h("li", {}, visible(p))),
        )
      : h("p", { class: "hint" }, meaning),
    pool.scan?.state === "running"
      ? [
          h(
            "p",
            { class: "hint" },
            `${pool.scan.type} running: ${size(pool.scan.examined)} of ${size(pool.scan.to_examine)}`,
          ),
          bar(pool.scan.examined, pool.scan.to_examine, "Examined"),
        ]
      : null,
  );
}

/**
 * @param {string} term
 * @param {string} value
 */
export const pair = (term, value) => h("div", {}, h("dt", {}, term), h("dd", {}, value));

/** @param {any} event */
export function eventRow(event) {
  const fields = Object.fromEntries(
    event.fields.map((/** @type {string} */ f) => [f.slice(0, f.indexOf("=")), f.slice(f.indexOf("=") + 1)]),
  );
  const of = fields.vdev_path ?? fields.history_dsname ?? fields.pool ?? "";
  return [moment(event.time), eventWords(event.class), name(of)];
}

/** @param {string} kind as OpenZFS names it */
function eventWords(kind) {
  const last = kind.split(".").pop() ?? kind;
  const isReport = kind.startsWith("ereport");
  return h("span", { title: kind }, isReport ? `error: ${last.replaceAll("_", " ")}` : last.replaceAll("_", " "));
}

/** @param {any} service */
export function serviceRow(service) {
  const status = service["<status>"];
  return [
    service.name,
    state(status === "online" ? "good" : status === "disabled" ? "idle" : "warn", status),
    service.clients ?? "",
    service.addresses.join(", "),
  ];
}
