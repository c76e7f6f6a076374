// One project, file system or LUN: what it is set to and from where, its snapshots, and what can be done with both.

import { button, fill, h, link, name, table, visible } from "./dom.js";
import { get, may, path, put, post, remove } from "./api.js";
import { advised, confirm, form, say } from "./dialog.js";
import { size } from "./format.js";
import { schedules } from "./schedules.js";
import { CHANGES } from "./share_fields.js";
import { newFilesystem, newLun, place } from "./shares.js";

/** @typedef {"project" | "lun" | "filesystem"} What */

const SIZES = new Set([
  "volsize",
  "volblocksize",
  "recordsize",
  "quota",
  "reservation",
  "default_volsize",
  "default_volblocksize",
]);
/** Shown elsewhere, or of no use to a person. */
const HIDDEN = new Set(["href", "source", "name", "pool", "project", "creation", "canonical_name"]);

/**
 * @param {HTMLElement} main
 * @param {string[]} parts pool, project and, of a share, its kind and name
 * @param {AbortSignal} signal
 */
export async function showShare(main, parts, signal) {
  const [pool, project, kind, own] = parts;
  const what = /** @type {What} */ (kind === "luns" ? "lun" : kind === "filesystems" ? "filesystem" : "project");
  const where =
    what === "project"
      ? path`/api/storage/v1/pools/${pool}/projects/${project}`
      : path`/api/storage/v1/pools/${pool}/projects/${project}/${kind}/${own}`;
  const [shown, taken] = await Promise.all([get(where, signal), get(`${where}/snapshots`, signal)]);
  const item = shown[what];
  const again = () => showShare(main, parts, signal);
  const back = () => {
    location.hash = what === "project" ? "shares" : place(pool, project);
  };
  const title = own ?? project;
  const kindWord = { project: "Project", lun: "LUN", filesystem: "File system" }[what];
  fill(
    main,
    h(
      "p",
      { class: "crumbs" },
      link("Shares", "shares"),
      " / ",
      own ? [link(project, place(pool, project)), " / "] : null,
    ),
    h(
      "div",
      { class: "title" },
      h("h1", {}, name(title), h("small", {}, ` ${kindWord} in ${pool}`)),
      h(
        "div",
        { class: "buttons" },
        what === "project" && may("nas.allow_createShare")
          ? [
              button("New LUN\u2026", () => newLun(item, again)),
              button("New file system\u2026", () => newFilesystem(item, again)),
            ]
          : null,
        button("Edit\u2026", () => edit(item, what, where, again), { id: "edit" }),
        may("nas.allow_destroy") && project !== "default"
          ? button("Destroy\u2026", () => destroy(item, kindWord, where, back), { class: "danger" })
          : null,
      ),
    ),
    h(
      "div",
      { class: "columns" },
      h("section", { "aria-labelledby": "p-h" }, h("h2", { id: "p-h" }, "Properties"), properties(item)),
      h(
        "div",
        { class: "part" },
        what === "project" ? await sharesOf(pool, project, signal) : null,
        h(
          "section",
          { "aria-labelledby": "sn-h" },
          h(
            "div",
            { class: "title" },
            h("h2", { id: "sn-h" }, "Snapshots"),
            may("nas.allow_takeSnap")
              ? button("Take a snapshot\u2026", () => take(where, what, again), { id: "snapshot" })
              : null,
          ),
          table(
            "Snapshots",
            ["Name", "Taken", "Only in it>", ""],
            taken.snapshots.map((/** @type {any} */ s) => snapshotRow(s, item, what, where, again)),
            "None yet.",
          ),
        ),
        await schedules(where, again, signal),
      ),
    ),
  );
}

/**
 * @param {string} pool
 * @param {string} project
 * @param {AbortSignal} signal
 */
async function sharesOf(pool, project, signal) {
  const where = path`/api/storage/v1/pools/${pool}/projects/${project}`;
  const [luns, filesystems] = await Promise.all([get(`${where}/luns`, signal), get(`${where}/filesystems`, signal)]);
  const rows = [
    ...luns.luns.map((/** @type {any} */ l) => [
      link(l.name, place(pool, project, "luns", l.name)),
      "LUN",
      size(l.volsize),
      size(l.space_total),
    ]),
    ...filesystems.filesystems.map((/** @type {any} */ f) => [
      link(f.name, place(pool, project, "filesystems", f.name)),
      "File system",
      "",
      size(f.space_total),
    ]),
  ];
  return h(
    "section",
    { "aria-labelledby": "sh-h" },
    h("h2", { id: "sh-h" }, "Shares"),
    table("Shares", ["Name", "Kind", "Size>", "Used>"], rows, "None yet."),
  );
}

/** @param {any} item */
function properties(item) {
  const rows = Object.entries(item)
    .filter(([key]) => !HIDDEN.has(key))
    .map(([key, value]) => [key, shownValue(key, value), item.source?.[key] ?? ""]);
  return h("div", { class: "scroll" }, table("Properties", ["Property", "Value", "Source"], rows));
}

/**
 * @param {string} key
 * @param {any} value
 */
function shownValue(key, value) {
  if (key.startsWith("space_") || SIZES.has(key)) return value === 0 ? "0" : size(value);
  if (key === "compressratio") return `${(value / 100).toFixed(2)}x`;
  if (Array.isArray(value)) return visible(value.join(", "));
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (value !== null && typeof value === "object") return visible(Object.values(value).join(" "));
  return name(String(value));
}

/**
 * @param {any} item
 * @param {What} what
 * @param {string} where
 * @param {() => Promise<void>} again
 */
async function edit(item, what, where, again) {
  const groups =
    what === "lun"
      ? await Promise.all([get("/api/san/v1/iscsi/target-groups"), get("/api/san/v1/iscsi/initiator-groups")])
      : [];
  const names = (/** @type {number} */ i) => groups[i].groups.map((/** @type {any} */ g) => g.name);
  const before = (/** @type {any} */ field) =>
    SIZES.has(field.key) && item[field.key] !== undefined ? exact(item[field.key]) : item[field.key];
  const fields = CHANGES[what].map((field) => {
    const options =
      field.key === "targetgroup"
        ? names(0)
        : field.key === "initiatorgroup"
          ? names(1)
          : withOwn(field.options, before(field));
    return { ...field, options, value: before(field) };
  });
  const same = (/** @type {any} */ a, /** @type {any} */ b) => JSON.stringify(a) === JSON.stringify(b);
  const done = await form(`Edit ${item.name}`, fields, "Save", (values) => {
    // What nobody touched is not sent: it stays inherited.
    const touched = fields.filter((f) => values[f.key] !== undefined && !same(values[f.key], f.value));
    return touched.length
      ? put(where, Object.fromEntries(touched.map((f) => [f.key, values[f.key]]))).then(advised)
      : Promise.resolve();
  });
  if (done) await again();
}

/**
 * @param {any} options
 * @param {any} own
 */
function withOwn(options, own) {
  if (!options || own === undefined) return options;
  const has = options.some((/** @type {any} */ o) => (Array.isArray(o) ? o[0] : o) === own);
  return has ? options : [own, ...options];
}

/**
 * A size as it can be typed and read back unchanged.
 * @param {number} bytes
 */
function exact(bytes) {
  const units = ["", "K", "M", "G", "T"];
  let value = bytes;
  let unit = 0;
  while (value !== 0 && value % 1024 === 0 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value}${units[unit]}`;
}

/**
 * @param {any} item
 * @param {string} kind
 * @param {string} where
 * @param {() => void} back
 */
async function destroy(item, kind, where, back) {
  const text = `${kind} ${visible(item.name)} and everything in it, its snapshots too, are gone for good.`;
  const asked = { key: "sure", label: `Type its name to destroy it` };
  const done = await form(
    `Destroy ${item.name}?`,
    [asked],
    "Destroy",
    async ({ sure }) => {
      if (sure !== item.name) throw new Error("That is not its name.");
      await remove(`${where}?confirm=true`);
    },
    { danger: true, text },
  );
  if (!done) return;
  say(`${kind} ${visible(item.name)} was destroyed.`);
  back();
}

/**
 * @param {string} where
 * @param {What} what
 * @param {() => Promise<void>} again
 */
async function take(where, what, again) {
  const now = new Date().toISOString().slice(0, 19).replaceAll(":", "").replace("T", "-");
  const text = what === "project" ? "All shares of the project, in one moment." : undefined;
  const done = await form(
    "Take a snapshot",
    [{ key: "name", label: "Name", value: `by-hand-${now}` }],
    "Take it",
    (values) => post(`${where}/snapshots`, values),
    { text },
  );
  if (done) await again();
}

/**
 * @param {any} snapshot
 * @param {any} item
 * @param {What} what
 * @param {string} where
 * @param {() => Promise<void>} again
 */
function snapshotRow(snapshot, item, what, where, again) {
  const own = `${where}/snapshots/${encodeURIComponent(snapshot.name)}`;
  const shown = visible(snapshot.name);
  const clone = async () => {
    const fields = [{ key: "share", label: "Name of the new share", value: `${item.name}-clone`.slice(0, 60) }];
    const done = await form(`Clone ${snapshot.name}`, fields, "Clone", (values) => put(`${own}/clone`, values), {
      text: "A share that begins as this snapshot, takes no space until it is written, and changes nothing of the original.",
    });
    if (!done) return;
    say("The clone is beside the original in its project.");
    await again();
  };
  const rollback = async () => {
    const then = `${visible(item.name)} becomes what it was at ${snapshot.creation}.`;
    const text = `${then} What was written since, and newer snapshots, are gone for good. Clients should not be using it.`;
    const done = await confirm(`Roll back to ${snapshot.name}?`, text, "Roll back", () =>
      put(`${own}/rollback?confirm=true`),
    );
    if (done) await again();
  };
  const drop = async () => {
    const done = await confirm(
      `Destroy snapshot ${snapshot.name}?`,
      "What only it has is gone for good.",
      "Destroy",
      () => remove(own),
    );
    if (done) await again();
  };
  const acts = h(
    "span",
    { class: "buttons" },
    what !== "project" && may("nas.allow_clone")
      ? button("Clone\u2026", clone, { "aria-label": `Clone ${shown}` })
      : null,
    what !== "project" && may("nas.allow_rollback")
      ? button("Roll back\u2026", rollback, { "aria-label": `Roll back to ${shown}` })
      : null,
    may("nas.allow_destroy") ? button("Destroy\u2026", drop, { "aria-label": `Destroy snapshot ${shown}` }) : null,
  );
  return [
    name(snapshot.name),
    snapshot.creation.replace("T", " ").replace("Z", " UTC"),
    size(snapshot.space_unique),
    acts,
  ];
}
