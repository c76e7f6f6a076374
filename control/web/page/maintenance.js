// Maintenance: the program and what pools could have of it, devices and scrubs, what to change, what happened, and who did what.

import { bar, button, fill, h, name, state, table, visible } from "./dom.js";
import { get, may, path, post, put, remove } from "./api.js";
import { advicePage } from "./advice.js";
import { block, tabs } from "./configuration.js";
import { confirm, form, say } from "./dialog.js";
import { duration, moment, size } from "./format.js";
import { poll } from "./poll.js";
import { eventRow, health, pair } from "./status.js";

/** @typedef {(into: HTMLElement, signal: AbortSignal) => void | Promise<void>} Part */

/** @type {[string, string, Part][]} */
const TABS = [
  ["system", "System", systemPage],
  ["devices", "Devices", devicesPage],
  ["advice", "Advice", advicePage],
  ["events", "Problems and events", eventsPage],
  ["logs", "Logs", logsPage],
];

/**
 * @param {HTMLElement} main
 * @param {string[]} parts
 * @param {AbortSignal} signal
 */
export async function showMaintenance(main, parts, signal) {
  const own = TABS.find(([key]) => key === parts[0]) ?? TABS[0];
  const into = h("div", { class: "part" });
  fill(
    main,
    h("h1", {}, "Maintenance"),
    tabs(
      "maintenance",
      TABS.map(([key, title]) => [key, title]),
      own[0],
    ),
    into,
  );
  await own[2](into, signal);
}

/**
 * @param {HTMLElement} into
 * @param {AbortSignal} signal
 */
async function systemPage(into, signal) {
  const [version, updates] = await Promise.all([
    get("/api/system/v1/version", signal),
    get("/api/system/v1/updates", signal),
  ]);
  const v = version.version;
  const apply = (/** @type {string} */ pool, /** @type {any[]} */ all) => async () => {
    const names = all.map((u) => u.name ?? u.feature).join(", ");
    const text = `${names}. This is for good: programs that do not know them cannot write the pool any more, and some not read it.`;
    const done = await confirm(`Enable ${all.length} features of ${visible(pool)}?`, text, "Enable", () =>
      put("/api/system/v1/updates/apply?confirm=true", { pool }),
    );
    if (done) await systemPage(into, signal);
  };
  /** @type {Map<string, any[]>} */
  const pools = new Map();
  for (const update of updates.updates) pools.set(update.pool, [...(pools.get(update.pool) ?? []), update]);
  const backup = async () => {
    const saved = await post("/api/system/v1/configuration/backup");
    download(
      `cenote-configuration-${new Date().toISOString().slice(0, 10)}.json`,
      JSON.stringify(saved, null, 2),
      "application/json",
    );
  };
  fill(
    into,
    block(
      "This appliance",
      may("appliance.allow_backup") && button("Save the configuration", backup),
      h(
        "dl",
        { class: "facts card" },
        pair("Program", `${v.product} ${v.version}`),
        pair("Name", visible(v.nodename)),
        pair("Serial number", v.asn),
        pair("Up for", duration(v.uptime)),
        pair("Cache at most", size(v.memory ?? 0)),
      ),
    ),
    block(
      "Deferred updates",
      null,
      pools.size === 0
        ? h("p", { class: "empty" }, "None: every pool has every feature that its compatibility lets it have.")
        : h(
            "p",
            {},
            "Features that this program knows and the pool does not have yet. They are enabled once, for good, and never by themselves.",
          ),
      ...[...pools].map(([pool, all]) =>
        h(
          "section",
          { class: "card" },
          h(
            "div",
            { class: "title" },
            h("h3", {}, name(pool)),
            may("update.allow_update") &&
              button("Enable all\u2026", apply(pool, all), { "aria-label": `Enable all of ${pool}` }),
          ),
          table(
            `Deferred updates of ${pool}`,
            ["Feature", "What it is", "Still readable by others"],
            all.map((u) => [u.name ?? u.feature, u.description ?? "", u.read_only_compatible ? "yes" : "no"]),
          ),
        ),
      ),
    ),
  );
}

/**
 * @param {HTMLElement} into
 * @param {AbortSignal} signal
 */
function devicesPage(into, signal) {
  const pools = h("div", { class: "part" });
  const make = () =>
    newPool(() => {
      say("The pool is there.");
    });
  fill(into, block("Pools and their devices", may("hardware.allow_pool") && button("New pool\u2026", make), pools));
  const work = async () => {
    const all = (await get("/api/storage/v1/pools", signal)).pools;
    const trees = await Promise.all(
      all.map((/** @type {any} */ p) => get(path`/api/storage/v1/pools/${p.name}/devices`, signal).catch(() => null)),
    );
    fill(
      pools,
      all.map((/** @type {any} */ p, /** @type {number} */ i) => poolDevices(p, trees[i]?.devices ?? [])),
      all.length === 0 ? h("p", { class: "empty" }, "There is no pool.") : null,
    );
  };
  return poll(2000, signal, work, (error) =>
    fill(pools, h("p", { class: "problem" }, /** @type {Error} */ (error).message)),
  );
}

/** @param {() => void} then */
async function newPool(then) {
  const done = await form(
    "New pool",
    [
      { key: "name", label: "Name" },
      {
        key: "devices",
        label: "Devices",
        hint: "Absolute paths of this machine, separated by spaces. What is on them is lost.",
      },
      {
        key: "profile",
        label: "How they share blocks",
        kind: "choice",
        options: ["stripe", "mirror", "mirror3", "raidz1", "raidz2", "raidz3"],
        value: "mirror",
      },
      { key: "log", label: "Log devices", optional: true, hint: "For synchronous writes; paths as above." },
    ],
    "Create",
    ({ devices, log, ...values }) => {
      const paths = (/** @type {string} */ text) => text.split(/\s+/).filter(Boolean);
      return post("/api/storage/v1/pools", { ...values, devices: paths(devices), ...(log ? { log: paths(log) } : {}) });
    },
  );
  if (done) then();
}

/**
 * @param {any} pool
 * @param {any[]} devices
 */
function poolDevices(pool, devices) {
  const { kind, word, meaning } = health(pool.status);
  const scan = pool.scan;
  const isRunning = scan?.state === "running";
  const where = path`/api/storage/v1/pools/${pool.name}`;
  const able = may("hardware.allow_scrub");
  const act = (/** @type {Promise<any>} */ done) => done.catch((error) => say(error.message));
  const end = () =>
    confirm(`End the ${scan.type} of ${visible(pool.name)}?`, "It begins anew the next time.", "End it", () =>
      remove(`${where}/scrub`),
    );
  const clear = () =>
    confirm(
      `Clear ${visible(pool.name)}?`,
      "The errors of its devices are counted anew, and it goes on when it is suspended.",
      "Clear",
      () => put(`${where}/clear`),
    );
  const rows = devices.map((d) => {
    const indent = h("span", {}, name(d.path ?? d.name));
    indent.style.paddingInlineStart = `${d.depth * 1.1}rem`;
    return [
      indent,
      d.class === "normal" ? "" : d.class,
      deviceState(d),
      d.read_errors,
      d.write_errors,
      d.checksum_errors,
      size(d.size),
      d.why ?? "",
    ];
  });
  return h(
    "section",
    { class: "card", "aria-label": `Pool ${pool.name}` },
    h(
      "div",
      { class: "title" },
      h("h3", {}, name(pool.name), " ", state(kind, word)),
      h(
        "div",
        { class: "buttons" },
        able && !isRunning
          ? button("Scrub", () => act(put(`${where}/scrub`)), { "aria-label": `Scrub ${pool.name}` })
          : null,
        able && isRunning ? button(`End the ${scan.type}\u2026`, end) : null,
        may("hardware.allow_pool") || able
          ? button("Clear errors\u2026", clear, { "aria-label": `Clear errors of ${pool.name}` })
          : null,
      ),
    ),
    pool.problems.length
      ? h(
          "ul",
          { class: "problems" },
          pool.problems.map((/** @type {string} */ p) => h("li", {}, visible(p))),
        )
      : h("p", { class: "hint" }, meaning),
    scan ? h("p", { class: "hint" }, scanWords(scan)) : h("p", { class: "hint" }, "Never scrubbed."),
    isRunning ? bar(scan.examined, scan.to_examine, "Examined") : null,
    rows.length
      ? table(
          `Devices of ${pool.name}`,
          ["Device", "For", "State", "Read errors>", "Write errors>", "Checksum errors>", "Size>", "Why"],
          rows,
        )
      : null,
  );
}

/** @param {any} device */
function deviceState(device) {
  const word = device.state.toLowerCase();
  const kind =
    word === "online" || word === "avail" || word === "inuse"
      ? "good"
      : word === "offline" || word === "removed"
        ? "idle"
        : word === "degraded"
          ? "warn"
          : "bad";
  return state(kind, word);
}

/** @param {any} scan */
function scanWords(scan) {
  const share = scan.to_examine > 0 ? ` (${Math.floor((scan.examined / scan.to_examine) * 100)} %)` : "";
  const found = `${size(scan.repaired)} repaired, ${scan.errors} errors left.`;
  if (scan.state === "running")
    return `${scan.type} running: ${size(scan.examined)} of ${size(scan.to_examine)}${share}; ${found}`;
  return `Last ${scan.type} ${scan.state}: ${size(scan.examined)} examined, ${found}`;
}

/**
 * @param {HTMLElement} into
 * @param {AbortSignal} signal
 */
function eventsPage(into, signal) {
  const problems = h("div");
  const events = h("div");
  fill(into, block("Problems", null, problems), block("Events", null, events));
  const work = async () => {
    const [p, e] = await Promise.all([get("/api/storage/v1/pools", signal), get("/api/storage/v1/events", signal)]);
    const rows = p.pools.flatMap((/** @type {any} */ pool) =>
      pool.problems.map((/** @type {string} */ why) => [name(pool.name), visible(why)]),
    );
    fill(problems, table("Problems", ["Pool", "What"], rows, "No problem is known."));
    fill(
      events,
      table(
        "Events",
        ["Time", "What", "Of", "Details"],
        e.events
          .slice(-500)
          .reverse()
          .map((/** @type {any} */ event) => [...eventRow(event), visible(event.fields.join("  "))]),
        "Nothing has happened since the appliance started.",
      ),
    );
  };
  return poll(5000, signal, work, (error) =>
    fill(problems, h("p", { class: "problem" }, /** @type {Error} */ (error).message)),
  );
}

/**
 * @param {HTMLElement} into
 * @param {AbortSignal} signal
 */
async function logsPage(into, signal) {
  if (!may("appliance.allow_audit")) {
    fill(into, h("p", { class: "empty" }, "The audit log is for those who have the permission appliance.allow_audit."));
    return;
  }
  const { logs } = await get("/api/log/v1/logs/audit?limit=400", signal);
  // Each change is there twice, when it begins and when it is done: the second says all.
  const rows = logs
    .filter((/** @type {any} */ r) => r.status !== 102)
    .reverse()
    .map((/** @type {any} */ r) => [
      moment(r.time),
      name(r.user),
      name(r.address),
      visible(r.summary),
      h("code", {}, visible(r.detail)),
      r.status < 400 ? state("good", String(r.status)) : state("bad", String(r.status)),
    ]);
  const csv = () =>
    download(
      "audit.csv",
      logs
        .map((/** @type {any} */ r) =>
          [r.time, r.user, r.address, r.session, r.summary, r.detail, r.status].map(csvCell).join(","),
        )
        .join("\r\n"),
      "text/csv",
    );
  fill(
    into,
    block(
      "Audit",
      button("Export CSV", csv),
      table("Audit log", ["Time", "Who", "From", "What", "With", "Answer"], rows, "Empty."),
    ),
  );
}

/**
 * A cell that a spreadsheet does not take for a formula.
 * @param {any} value
 */
export function csvCell(value) {
  const text = String(value);
  const safe = typeof value !== "number" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * @param {string} file
 * @param {string} text
 * @param {string} kind
 */
export function download(file, text, kind) {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  const a = h("a", { href: url, download: file });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}
