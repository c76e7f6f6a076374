// Shares: projects, and in each its file systems and LUNs; one share with its settings and snapshots is in share.js.
//
//   #shares                          everything
//   #shares/POOL/PROJECT             a project
//   #shares/POOL/PROJECT/luns/NAME   a LUN, or filesystems/NAME a file system
//   #shares/database                 the guided deployment

import { button, fill, h, link, name, state, table } from "./dom.js";
import { get, may, path, post } from "./api.js";
import { advised, form, say } from "./dialog.js";
import { size } from "./format.js";
import { NEW_FILESYSTEM, NEW_LUN, NEW_PROJECT } from "./share_fields.js";
import { showGuide } from "./guide.js";
import { showShare } from "./share.js";

/**
 * A place in the page.
 * @param {...string} parts
 */
export const place = (...parts) => ["shares", ...parts].map(encodeURIComponent).join("/");

/**
 * @param {HTMLElement} main
 * @param {string[]} parts
 * @param {AbortSignal} signal
 */
export async function showShares(main, parts, signal) {
  if (parts[0] === "database") return showGuide(main, signal);
  if (parts.length >= 2) return showShare(main, parts, signal);
  const [pools, projects, filesystems, luns] = await Promise.all([
    get("/api/storage/v1/pools", signal),
    get("/api/storage/v1/projects", signal),
    get("/api/storage/v1/filesystems", signal),
    get("/api/storage/v1/luns", signal),
  ]);
  const names = pools.pools.filter((/** @type {any} */ p) => p.usage).map((/** @type {any} */ p) => p.name);
  const again = () => showShares(main, parts, signal);
  const of = (/** @type {any[]} */ all, /** @type {any} */ p) =>
    all.filter((s) => s.pool === p.pool && s.project === p.name);
  fill(
    main,
    h(
      "div",
      { class: "title" },
      h("h1", {}, "Shares"),
      h(
        "div",
        { class: "buttons" },
        may("nas.allow_createProject") && names.length > 0
          ? [
              link("Deploy a database\u2026", "shares/database"),
              button("New project\u2026", () => newProject(names, again), { class: "primary", id: "new-project" }),
            ]
          : null,
      ),
    ),
    projects.projects.map((/** @type {any} */ p) =>
      project(p, of(filesystems.filesystems, p), of(luns.luns, p), again),
    ),
    projects.projects.length === 0
      ? h("p", { class: "empty" }, "There is no project: a pool must be made first, under Maintenance, Devices.")
      : null,
  );
}

/**
 * @param {any} p
 * @param {any[]} filesystems
 * @param {any[]} luns
 * @param {() => Promise<void>} again
 */
function project(p, filesystems, luns, again) {
  const shares = [...luns.map((l) => lunRow(l)), ...filesystems.map((f) => filesystemRow(f))];
  const actions = may("nas.allow_createShare")
    ? h(
        "div",
        { class: "buttons" },
        button("New LUN\u2026", () => newLun(p, again), { "aria-label": `New LUN in ${p.name}` }),
        button("New file system\u2026", () => newFilesystem(p, again), {
          "aria-label": `New file system in ${p.name}`,
        }),
      )
    : null;
  return h(
    "section",
    { class: "project", "aria-label": `Project ${p.name}` },
    h(
      "div",
      { class: "title" },
      h("h2", {}, link(p.name, place(p.pool, p.name)), h("small", {}, ` in ${p.pool}, ${size(p.space_total)}`)),
      actions,
    ),
    table(
      `Shares of ${p.name}`,
      ["Name", "Kind", "State", "Size>", "Used>", "Block>", "Seen by", "Log bias"],
      shares,
      "No shares yet.",
    ),
  );
}

/** @param {any} lun */
function lunRow(lun) {
  return [
    link(lun.name, place(lun.pool, lun.project, "luns", lun.name)),
    "LUN",
    lun.status === "online" ? state("good", "online") : state("idle", lun.status),
    size(lun.volsize),
    size(lun.space_total),
    size(lun.volblocksize),
    h(
      "span",
      {},
      lun.initiatorgroup.flatMap((/** @type {string} */ g, /** @type {number} */ i) => [i ? ", " : "", name(g)]),
      " at ",
      name(lun.targetgroup),
    ),
    lun.logbias,
  ];
}

/** @param {any} fs */
function filesystemRow(fs) {
  return [
    link(fs.name, place(fs.pool, fs.project, "filesystems", fs.name)),
    "File system",
    state("good", "online"),
    fs.quota ? size(fs.quota) : "\u2013",
    size(fs.space_total),
    size(fs.recordsize),
    name(fs.mountpoint),
    fs.logbias,
  ];
}

/**
 * @param {string[]} pools
 * @param {() => Promise<void>} again
 */
async function newProject(pools, again) {
  const fields = [
    { key: "pool", label: "Pool", kind: /** @type {const} */ ("choice"), options: pools, value: pools[0] },
    ...NEW_PROJECT,
  ];
  const done = await form("New project", fields, "Create", ({ pool, ...values }) =>
    post(path`/api/storage/v1/pools/${pool}/projects`, values),
  );
  if (done) await again();
}

/**
 * @param {any} p
 * @param {() => Promise<void>} again
 */
export async function newLun(p, again) {
  const [targets, initiators] = await Promise.all([
    get("/api/san/v1/iscsi/target-groups"),
    get("/api/san/v1/iscsi/initiator-groups"),
  ]);
  const names = (/** @type {any} */ all) => all.groups.map((/** @type {any} */ g) => g.name);
  const fields = NEW_LUN.map((field) => {
    if (field.key === "targetgroup") return { ...field, options: names(targets), value: p.targetgroup };
    if (field.key === "initiatorgroup") return { ...field, options: names(initiators), value: p.initiatorgroup };
    return field;
  });
  const where = path`/api/storage/v1/pools/${p.pool}/projects/${p.name}/luns`;
  const done = await form(`New LUN in ${p.name}`, fields, "Create", (values) => post(where, values).then(advised));
  if (!done) return;
  say("The LUN is there. Its block size cannot be changed in place: see its page.");
  await again();
}

/**
 * @param {any} p
 * @param {() => Promise<void>} again
 */
export async function newFilesystem(p, again) {
  const where = path`/api/storage/v1/pools/${p.pool}/projects/${p.name}/filesystems`;
  const done = await form(`New file system in ${p.name}`, NEW_FILESYSTEM, "Create", (values) =>
    post(where, values).then(advised),
  );
  if (done) await again();
}
