// The guided deployment: a project and two LUNs laid out for InnoDB, its data in blocks of its page and its log in large ones.

import { button, fill, h, link, name, visible } from "./dom.js";
import { get, path, post, put } from "./api.js";
import { parseSize, size } from "./format.js";
import { place } from "./shares.js";

const FIELDS = [
  ["project", "Project", "mysql", ""],
  ["data", "Data LUN", "innodb-data", "Blocks of 16K, the page of InnoDB"],
  ["dataSize", "Its size", "1T", ""],
  ["log", "Log LUN", "innodb-log", "Blocks of 128K: the redo log is written in long runs"],
  ["logSize", "Its size", "256G", ""],
  [
    "initiator",
    "The database host\u2019s initiator",
    "",
    "Its iqn, from /etc/iscsi/initiatorname.iscsi; empty: every initiator sees both LUNs",
  ],
];

/**
 * @param {HTMLElement} main
 * @param {AbortSignal} signal
 */
export async function showGuide(main, signal) {
  const { pools } = await get("/api/storage/v1/pools", signal);
  const usable = pools.filter((/** @type {any} */ p) => p.usage);
  const pool = h(
    "select",
    { id: "g-pool" },
    usable.map((/** @type {any} */ p) =>
      h("option", { value: p.name }, `${visible(p.name)} (${size(p.usage.available)} free)`),
    ),
  );
  /** @type {Record<string, HTMLInputElement>} */
  const inputs = {};
  const rows = FIELDS.map(([key, label, value, hint]) => {
    inputs[key] = h("input", { id: `g-${key}`, value, spellcheck: false, autocomplete: "off" });
    return h(
      "div",
      { class: "field" },
      h("label", { htmlFor: `g-${key}` }, label),
      inputs[key],
      hint ? h("p", { class: "hint" }, hint) : null,
    );
  });
  const thin = h("input", { type: "checkbox", id: "g-thin", checked: true });
  const steps = h("ol", { class: "steps", role: "status" });
  const problem = h("p", { class: "problem", role: "alert" });
  const result = h("section");
  const submit = h("button", { class: "primary", id: "g-deploy" }, "Deploy");
  const run = async (/** @type {Event} */ event) => {
    event.preventDefault();
    fill(problem);
    fill(steps);
    submit.disabled = true;
    try {
      const done = await deploy(pool.value, values(inputs), thin.checked, steps);
      fill(result, ...whatNext(done));
    } catch (error) {
      fill(problem, /** @type {Error} */ (error).message);
    }
    submit.disabled = false;
  };
  fill(
    main,
    h("p", { class: "crumbs" }, link("Shares", "shares"), " /"),
    h("h1", {}, "Deploy a database"),
    h(
      "p",
      {},
      "For MariaDB or MySQL with InnoDB over iSCSI: one project, so that both LUNs are snapshotted in one moment; ",
      "the data and the log on a LUN each, in the blocks that each is written in.",
    ),
    h(
      "form",
      { class: "guide", onsubmit: run },
      h("div", { class: "field" }, h("label", { htmlFor: "g-pool" }, "Pool"), pool),
      rows,
      h("div", { class: "field flag" }, h("label", { htmlFor: "g-thin" }, "Thin: take space as it is written"), thin),
      problem,
      h("div", { class: "buttons" }, submit),
    ),
    steps,
    result,
  );
}

/** @param {Record<string, HTMLInputElement>} inputs */
function values(inputs) {
  const all = Object.fromEntries(Object.entries(inputs).map(([key, input]) => [key, input.value.trim()]));
  for (const key of ["dataSize", "logSize"]) {
    if (parseSize(all[key]) === null) throw new Error(`\u201c${all[key]}\u201d is no size: write 256G or 1T.`);
  }
  for (const key of ["project", "data", "log"])
    if (all[key] === "") throw new Error("The project and both LUNs need a name.");
  return all;
}

/**
 * Each step is looked for before it is made, so that a deployment that failed half-way goes on from there.
 * @param {string} pool
 * @param {Record<string, string>} want
 * @param {boolean} sparse
 * @param {Element} steps
 */
async function deploy(pool, want, sparse, steps) {
  const step = async (/** @type {string} */ text, /** @type {() => Promise<any>} */ work) => {
    const line = h("li", {}, text, " ");
    steps.append(line);
    const made = await work();
    line.append(h("span", { class: "state good" }, made === false ? "was there already" : "done"));
  };
  const projects = path`/api/storage/v1/pools/${pool}/projects`;
  const luns = path`/api/storage/v1/pools/${pool}/projects/${want.project}/luns`;
  const has = async (/** @type {string} */ where, /** @type {string} */ list, /** @type {(x: any) => boolean} */ is) =>
    (await get(where))[list].some(is);
  const group = `${want.project}-init`;
  const targetGroup = `${want.project}-tgt`;
  let iqn = "";
  await step("A target, by which the host finds them,", async () => {
    const groups = (await get("/api/san/v1/iscsi/target-groups")).groups;
    iqn = groups.find((/** @type {any} */ g) => g.name === targetGroup)?.targets[0] ?? "";
    if (iqn) return false;
    iqn = (await post("/api/san/v1/iscsi/targets", { alias: want.project })).target.iqn;
    return undefined;
  });
  await step(`target group ${visible(targetGroup)}`, async () => {
    if (await has("/api/san/v1/iscsi/target-groups", "groups", (g) => g.name === targetGroup)) return false;
    return post("/api/san/v1/iscsi/target-groups", { name: targetGroup, targets: [iqn] });
  });
  if (want.initiator) {
    await step("the host\u2019s initiator", async () => {
      if (await has("/api/san/v1/iscsi/initiators", "initiators", (i) => i.initiator === want.initiator)) return false;
      return post("/api/san/v1/iscsi/initiators", { initiator: want.initiator, alias: `${want.project} host` });
    });
    await step(`initiator group ${visible(group)}`, async () => {
      if (await has("/api/san/v1/iscsi/initiator-groups", "groups", (g) => g.name === group)) return false;
      return post("/api/san/v1/iscsi/initiator-groups", { name: group, initiators: [want.initiator] });
    });
  }
  await step(`project ${visible(want.project)}, log bias latency`, async () => {
    if (await has(projects, "projects", (p) => p.name === want.project)) return false;
    return post(projects, { name: want.project, logbias: "latency" });
  });
  const groups = want.initiator ? { initiatorgroup: [group] } : {};
  for (const [lun, volsize, volblocksize] of [
    [want.data, want.dataSize, "16K"],
    [want.log, want.logSize, "128K"],
  ]) {
    await step(`LUN ${visible(lun)}, ${volsize} in blocks of ${volblocksize}`, async () => {
      if (await has(luns, "luns", (l) => l.name === lun)) return false;
      return post(luns, { name: lun, volsize, volblocksize, sparse, targetgroup: targetGroup, ...groups });
    });
  }
  const made = (await get(luns)).luns.filter((/** @type {any} */ l) => l.name === want.data || l.name === want.log);
  const services = (await get("/api/service/v1/services")).services;
  const portal = services.find((/** @type {any} */ s) => s.name === "iscsi")?.addresses[0] ?? "ADDRESS:3260";
  return { pool, want, iqn, made, portal };
}

/** @param {{pool: string, want: Record<string, string>, iqn: string, made: any[], portal: string}} done */
function whatNext({ pool, want, iqn, made, portal }) {
  const device = (/** @type {string} */ own) =>
    `/dev/disk/by-id/wwn-0x${made.find((l) => l.name === own)?.lunguid ?? ""}`;
  const directory = `/${want.project}/san`;
  const lines = [
    `iscsiadm -m discovery -t sendtargets -p ${portal}`,
    `iscsiadm -m node -T ${iqn} -p ${portal} --login`,
    `for lun in ${device(want.data)} ${device(want.log)}; do`,
    "  echo 1024 > /sys/block/$(basename $(readlink -f $lun))/queue/max_sectors_kb; mkfs.xfs $lun",
    "done",
    `mkdir -p ${directory}/${want.data} ${directory}/${want.log}`,
    `mount -o noatime,nodiratime,logbufs=8,logbsize=256k ${device(want.data)} ${directory}/${want.data}`,
    `mount -o noatime,nodiratime,logbufs=8,logbsize=256k ${device(want.log)} ${directory}/${want.log}`,
    `chown -R mysql:mysql ${directory}`,
  ];
  const text = lines.join("\n");
  const copied = h("span", { class: "hint", role: "status" });
  const second = h("div", { class: "part" });
  const backup = async () => {
    const taken = `backup-${stamp()}`;
    try {
      await post(path`/api/storage/v1/pools/${pool}/projects/${want.project}/snapshots`, { name: taken });
      fill(copied, `Snapshot ${taken} of both LUNs was taken.`);
      const start = button(
        "Clone it for a second database\u2026",
        () => cloneBoth({ pool, want, taken, into: second }),
        {
          id: "g-clone",
        },
      );
      fill(second, h("p", { class: "buttons" }, start));
    } catch (error) {
      fill(copied, /** @type {Error} */ (error).message);
    }
  };
  return [
    h("h2", {}, "On the database host"),
    h("pre", { class: "commands", tabIndex: 0, "aria-label": "Commands for the host" }, text),
    h(
      "div",
      { class: "buttons" },
      button("Copy", () => navigator.clipboard?.writeText(text).then(() => fill(copied, "Copied.")), {}),
      button("Snapshot both LUNs now", backup, { id: "g-snapshot" }),
      copied,
    ),
    h(
      "p",
      {},
      "Then let ",
      h("code", {}, "datadir"),
      " point to the first and ",
      h("code", {}, "innodb_log_group_home_dir"),
      " to the second. The project is ",
      link(want.project, place(pool, want.project)),
      ": a snapshot of it has both LUNs of one moment, and clones of that, on their own mounts, are what a second MariaDB is started on.",
    ),
    h(
      "ul",
      {},
      made.map((l) =>
        h(
          "li",
          {},
          name(l.name),
          `: LUN ${l.lunumber ?? "?"}, ${size(l.volsize)} in blocks of ${size(l.volblocksize)}, GUID ${l.lunguid}`,
        ),
      ),
    ),
    second,
  ];
}

/** A moment as names have it. */
const stamp = () => new Date().toISOString().slice(0, 19).replaceAll(":", "").replace("T", "-");

/**
 * Both LUNs as they were in one moment, each a clone beside the original, and how a second server is started on them.
 * @param {{pool: string, want: Record<string, string>, taken: string, into: Element}} of
 */
async function cloneBoth({ pool, want, taken, into }) {
  const luns = path`/api/storage/v1/pools/${pool}/projects/${want.project}/luns`;
  const copies = [want.data, want.log].map((own) => ({ own, share: `${own}-copy` }));
  try {
    for (const { own, share } of copies) {
      await put(`${luns}${path`/${own}/snapshots/${taken}/clone`}`, { share });
    }
    const made = (await get(luns)).luns;
    const device = (/** @type {string} */ share) =>
      `/dev/disk/by-id/wwn-0x${made.find((/** @type {any} */ l) => l.name === share)?.lunguid ?? ""}`;
    const directory = `/${want.project}/copy`;
    const lines = [
      "iscsiadm -m session --rescan",
      `mkdir -p ${copies.map(({ own }) => `${directory}/${own}`).join(" ")}`,
      ...copies.map(({ own, share }) => `mount -o nouuid,noatime ${device(share)} ${directory}/${own}`),
      `mariadbd --datadir=${directory}/${want.data} --innodb-log-group-home-dir=${directory}/${want.log} \\`,
      `  --port=3307 --socket=/run/mysqld/copy.sock --pid-file=/run/mysqld/copy.pid`,
    ];
    fill(
      into,
      h("h2", {}, "A second database on the clones"),
      h(
        "p",
        {},
        "It begins as after a power cut at that moment: InnoDB recovers by its log, and the original goes on untouched.",
      ),
      h("pre", { class: "commands", tabIndex: 0, "aria-label": "Commands for the second database" }, lines.join("\n")),
    );
  } catch (error) {
    fill(into, h("p", { class: "problem", role: "alert" }, /** @type {Error} */ (error).message));
  }
}
