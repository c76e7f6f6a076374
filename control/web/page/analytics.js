// Analytics: what can be opened and what is open, worksheets that are kept, and questions to begin with.
//
//   #analytics                        all that
//   #analytics/new/STATISTIC/…        a sheet that is nowhere but in its address
//   #analytics/sheet/UUID             one that the appliance keeps

import { button, fill, h, link, name, table, visible } from "./dom.js";
import { Fault, get, may, path, put, remove } from "./api.js";
import { changesSection } from "./changes.js";
import { chooseStatistic } from "./choose.js";
import { confirm, say } from "./dialog.js";
import { moment, size } from "./format.js";
import { parse } from "./query.js";
import { sheetOf, showSheet } from "./sheet.js";

const API = "/api/analytics/v1";

/** What to open first, by the question that it answers. */
const STARTS = [
  ["Are transfers split on their way to the disks?", ["iscsi.ops[size]", "io.ops[size]", "iscsi.bytes", "io.bytes"]],
  ["How fast is iSCSI answered?", ["iscsi.ops", "iscsi.bytes", "iscsi.ops[latency]"]],
  ["How fast is NBD answered?", ["nbd.ops", "nbd.bytes", "nbd.ops[latency]"]],
  ["How busy is each disk?", ["io.ops[disk]", "io.bytes[disk]", "io.ops[latency]"]],
  ["Does the cache help?", ["arc.accesses[hit/miss]", "arc.size"]],
];

/**
 * @param {HTMLElement} main
 * @param {string[]} parts
 * @param {AbortSignal} signal
 */
export async function showAnalytics(main, parts, signal) {
  let statistics;
  try {
    statistics = (await get(`${API}/statistics`, signal)).statistics;
  } catch (error) {
    if (!(error instanceof Fault) || error.status !== 404) throw error;
    fill(main, h("h1", {}, "Analytics"), h("p", { class: "empty" }, "This appliance keeps no statistics."));
    return;
  }
  if (parts[0] === "sheet" && parts[1]) return showSheet(main, statistics, await worksheet(parts[1], signal), signal);
  if (parts[0] === "new")
    return showSheet(
      main,
      statistics,
      {
        name: "",
        uuid: "",
        graphs: parts
          .slice(1)
          .filter(Boolean)
          .map((n) => ({ name: n, drilldowns: [], seconds: 300 })),
      },
      signal,
    );
  const [sheets, datasets, changes] = await Promise.all([
    get(`${API}/worksheets`, signal),
    get(`${API}/datasets`, signal),
    changesSection(signal),
  ]);
  const again = () => showAnalytics(main, parts, signal);
  fill(
    main,
    h(
      "div",
      { class: "title" },
      h("h1", {}, "Analytics"),
      h(
        "div",
        { class: "buttons" },
        button(
          "Open a statistic\u2026",
          async () => {
            const chosen = await chooseStatistic(statistics);
            if (chosen) location.hash = sheetOf([chosen]);
          },
          { class: "primary", id: "open-statistic" },
        ),
      ),
    ),
    h(
      "section",
      { "aria-labelledby": "a-start" },
      h("h2", { id: "a-start" }, "Begin with a question"),
      h(
        "ul",
        { class: "starts" },
        STARTS.map(([question, all]) =>
          startOf(/** @type {string} */ (question), /** @type {string[]} */ (all), statistics),
        ),
      ),
    ),
    h(
      "section",
      { "aria-labelledby": "a-sheets" },
      h("h2", { id: "a-sheets" }, "Worksheets"),
      table(
        "Worksheets",
        ["Name", "Owner", "Changed", "Graphs>", ""],
        sheets.worksheets.map((/** @type {any} */ w) => [
          link(w.name, `analytics/sheet/${encodeURIComponent(w.uuid)}`),
          name(w.owner),
          w.mtime ? moment(w.mtime) : "",
          (w.graphs ?? []).length,
          may("analytics.allow_changeWorksheets")
            ? h(
                "span",
                { class: "buttons" },
                button("Destroy\u2026", () => destroySheet(w, again), {
                  class: "danger",
                  "aria-label": `Destroy ${w.name}`,
                }),
              )
            : null,
        ]),
        "None yet: open statistics, then save them as one.",
      ),
    ),
    h(
      "section",
      { "aria-labelledby": "a-sets" },
      h("h2", { id: "a-sets" }, "Open statistics"),
      table(
        "Datasets",
        ["Statistic", "Cost", "Memory>", "Disk>", "Since", "State", ""],
        datasets.datasets.map((/** @type {any} */ d) => datasetRow(d, again)),
        "None is open, so that none costs anything.",
      ),
    ),
    changes,
  );
}

/**
 * @param {string} question
 * @param {string[]} all
 * @param {any[]} statistics
 */
function startOf(question, all, statistics) {
  const known = all.filter((s) => statistics.some((k) => k.name === parse(s).base));
  return known.length
    ? h("li", {}, h("a", { href: `#${sheetOf(known)}` }, question), h("span", { class: "hint" }, known.join(", ")))
    : null;
}

/**
 * @param {any} d
 * @param {() => Promise<void>} again
 */
function datasetRow(d, again) {
  const act = (/** @type {Promise<any>} */ done) => done.then(again, (error) => say(error.message));
  const where = path`/api/analytics/v1/datasets/${d.name}`;
  const able = may("analytics.allow_changeDatasets");
  const drop = async () => {
    if (
      await confirm("Destroy this dataset?", `${visible(d.name)}: all its samples are gone for good.`, "Destroy", () =>
        remove(where),
      )
    )
      await again();
  };
  return [
    link(d.name, sheetOf([d.name])),
    d.overhead,
    size(d.incore),
    size(d.size),
    d.since ? moment(d.since) : "",
    d.problem ? visible(d.problem) : `${d.suspended ? "suspended" : "running"}${d.saved ? ", kept" : ""}`,
    able
      ? h(
          "span",
          { class: "buttons" },
          button(d.suspended ? "Resume" : "Suspend", () => act(put(`${where}/${d.suspended ? "resume" : "suspend"}`)), {
            "aria-label": `${d.suspended ? "Resume" : "Suspend"} ${d.name}`,
          }),
          d.saved ? null : button("Keep", () => act(put(`${where}/save`)), { "aria-label": `Keep ${d.name} on disk` }),
          button("Destroy\u2026", drop, { class: "danger", "aria-label": `Destroy ${d.name}` }),
        )
      : null,
  ];
}

/**
 * @param {any} sheet
 * @param {() => Promise<void>} again
 */
async function destroySheet(sheet, again) {
  const done = await confirm(
    `Destroy worksheet ${visible(sheet.name)}?`,
    "Its statistics and their samples stay.",
    "Destroy",
    () => remove(path`/api/analytics/v1/worksheets/${sheet.uuid}`),
  );
  if (done) await again();
}

/**
 * @param {string} uuid
 * @param {AbortSignal} signal
 */
async function worksheet(uuid, signal) {
  const { worksheet: sheet } = await get(path`/api/analytics/v1/worksheets/${uuid}`, signal);
  return {
    ...sheet,
    graphs: sheet.graphs ?? (await get(path`/api/analytics/v1/worksheets/${uuid}/datasets`, signal)).datasets,
  };
}
