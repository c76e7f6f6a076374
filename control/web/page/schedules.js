// Snapshots that are taken by themselves: the schedules of a project or share.

import { button, h, table, visible } from "./dom.js";
import { get, may, post, remove } from "./api.js";
import { confirm, form } from "./dialog.js";

/** @type {import("./dialog.js").Field[]} */
const FIELDS = [
  {
    key: "frequency",
    label: "How often",
    kind: "choice",
    options: [
      ["halfhour", "every half hour"],
      ["hour", "every hour"],
      ["day", "every day"],
      ["week", "every week"],
      ["month", "every month"],
    ],
    value: "day",
  },
  { key: "minute", label: "Minute", kind: "number", optional: true, hint: "0 to 59" },
  { key: "hour", label: "Hour, UTC", kind: "number", optional: true, hint: "0 to 23; of a day, a week or a month" },
  { key: "day", label: "Day", optional: true, hint: "Of a week its name, of a month its number" },
  { key: "keep", label: "Keep so many", kind: "number", value: "14", hint: "0: all" },
];

/**
 * @param {string} where the path of the project or share
 * @param {() => Promise<void>} again
 * @param {AbortSignal} signal
 */
export async function schedules(where, again, signal) {
  const { automatics } = await get(`${where}/automatic`, signal);
  const able = may("nas.allow_scheduleSnap");
  const add = async () => {
    if (await form("New schedule", FIELDS, "Add", (values) => post(`${where}/automatic`, values))) await again();
  };
  const drop = (/** @type {any} */ own) => async () => {
    const text = "No more snapshots are taken by it; what it took stays.";
    if (await confirm(`End schedule ${visible(own.name)}?`, text, "End it", () => remove(own.href))) await again();
  };
  const rows = automatics.map((/** @type {any} */ own) => [
    words(own),
    own.keep && own.keep !== "0" ? own.keep : "all",
    own.problem ? visible(own.problem) : (own.last ?? "not yet"),
    able &&
      h("span", { class: "buttons" }, button("End\u2026", drop(own), { "aria-label": `End schedule ${own.name}` })),
  ]);
  return h(
    "section",
    { "aria-label": "Schedules" },
    h(
      "div",
      { class: "title" },
      h("h2", {}, "Schedules"),
      able && button("New schedule\u2026", add, { id: "new-schedule" }),
    ),
    table("Schedules", ["When", "Keep>", "Last", ""], rows, "No snapshots are taken by themselves."),
  );
}

/** @param {any} own */
function words({ frequency, minute = 0, hour, day }) {
  const two = (/** @type {any} */ n) => String(n ?? 0).padStart(2, "0");
  if (frequency === "halfhour") return "every half hour";
  if (frequency === "hour") return `every hour, at minute ${minute}`;
  return `every ${frequency}${day === undefined ? "" : ` on ${visible(String(day))}`} at ${two(hour)}:${two(minute)} UTC`;
}
