// Configuration: who may reach which LUN (targets, initiators, groups), who may log in, and which services run.

import { button, fill, h, link, name, state, table, visible } from "./dom.js";
import { get, may, path, post, put, remove } from "./api.js";
import { confirm, form } from "./dialog.js";
import { serviceRow } from "./status.js";
import { usersPage } from "./users.js";

/** @type {[string, string, (signal: AbortSignal, again: () => Promise<void>) => Promise<Node[]>][]} */
const TABS = [
  ["san", "SAN", sanPage],
  ["services", "Services", servicesPage],
  ["users", "Users and roles", usersPage],
];

/**
 * @param {HTMLElement} main
 * @param {string[]} parts
 * @param {AbortSignal} signal
 */
export async function showConfiguration(main, parts, signal) {
  const own = TABS.find(([key]) => key === parts[0]) ?? TABS[0];
  const again = () => showConfiguration(main, parts, signal);
  const content = await own[2](signal, again);
  fill(
    main,
    h("h1", {}, "Configuration"),
    tabs(
      "configuration",
      TABS.map(([key, title]) => [key, title]),
      own[0],
    ),
    content,
  );
}

/**
 * @param {string} place
 * @param {string[][]} all key and title
 * @param {string} own
 */
export function tabs(place, all, own) {
  const one = ([key, title] = ["", ""]) =>
    h("a", { href: `#${place}/${key}`, "aria-current": key === own ? "page" : undefined }, title);
  return h(
    "nav",
    { class: "tabs", "aria-label": `Parts of ${place}` },
    all.map((pair) => one(/** @type {[string, string]} */ (pair))),
  );
}

/**
 * A titled section with a way to add to it.
 * @param {string} title
 * @param {Node | null | false} add
 * @param {...Node} content
 */
export function block(title, add, ...content) {
  return h("section", { "aria-label": title }, h("div", { class: "title" }, h("h2", {}, title), add), content);
}

/**
 * @param {AbortSignal} signal
 * @param {() => Promise<void>} again
 */
async function sanPage(signal, again) {
  const base = "/api/san/v1/iscsi";
  const [targets, initiators, tgroups, igroups, inquiry] = await Promise.all([
    get(`${base}/targets`, signal),
    get(`${base}/initiators`, signal),
    get(`${base}/target-groups`, signal),
    get(`${base}/initiator-groups`, signal),
    get("/api/san/v1/inquiry", signal),
  ]);
  const able = may("stmf.allow_configure");
  const iqns = targets.targets.map((/** @type {any} */ t) => [t.iqn, t.alias ? `${t.alias} (${t.iqn})` : t.iqn]);
  const hosts = initiators.initiators.map((/** @type {any} */ i) => [
    i.initiator,
    i.alias ? `${i.alias} (${i.initiator})` : i.initiator,
  ]);
  const ask = async (/** @type {Promise<boolean>} */ done) => {
    if (await done) await again();
  };
  const drop = (/** @type {string} */ what, /** @type {string} */ own, /** @type {string} */ where) =>
    able &&
    h(
      "span",
      { class: "buttons" },
      button(
        "Remove\u2026",
        () =>
          ask(
            confirm(
              `Remove ${what} ${visible(own)}?`,
              "Clients that come by it are not let in any more.",
              "Remove",
              () => remove(where),
            ),
          ),
        { class: "danger", "aria-label": `Remove ${own}` },
      ),
    );
  const newTarget = () =>
    ask(
      form(
        "New target",
        [
          { key: "alias", label: "Alias", hint: "What people call it." },
          { key: "iqn", label: "iSCSI name", optional: true, hint: "Empty: one is made." },
        ],
        "Create",
        (values) => post(`${base}/targets`, values),
      ),
    );
  const newInitiator = () =>
    ask(
      form(
        "New initiator",
        [
          { key: "initiator", label: "iSCSI name", hint: "On Linux in /etc/iscsi/initiatorname.iscsi." },
          { key: "alias", label: "Alias", optional: true },
          { key: "chapuser", label: "CHAP user", optional: true },
          { key: "chapsecret", label: "CHAP secret", kind: "password", optional: true, hint: "12 to 16 characters." },
        ],
        "Create",
        (values) => post(`${base}/initiators`, values),
      ),
    );
  const group = (/** @type {"target" | "initiator"} */ kind, /** @type {any} */ own) => {
    const list = `${kind}s`;
    const options = kind === "target" ? iqns : hosts;
    const fields = [
      { key: "name", label: "Name", value: own?.name ?? "" },
      {
        key: list,
        label: kind === "target" ? "Targets" : "Initiators",
        kind: /** @type {const} */ ("many"),
        options,
        value: own?.[list] ?? [],
      },
    ];
    return ask(
      own
        ? form(`Edit group ${own.name}`, fields, "Save", (values) =>
            put(
              `${base}/${kind}-groups/${encodeURIComponent(own.name)}`,
              own.name === values.name ? { [list]: values[list] } : values,
            ),
          )
        : form(`New ${kind} group`, fields, "Create", (values) => post(`${base}/${kind}-groups`, values)),
    );
  };
  const groupRows = (/** @type {any[]} */ all, /** @type {"target" | "initiator"} */ kind) =>
    all.map((g) => [
      name(g.name),
      g.name === "default"
        ? "all"
        : h(
            "span",
            {},
            g[`${kind}s`].flatMap((/** @type {string} */ m, /** @type {number} */ i) => [i ? ", " : "", name(m)]),
          ),
      g.name === "default"
        ? ""
        : h(
            "span",
            { class: "buttons" },
            able && button("Edit\u2026", () => group(kind, g), { "aria-label": `Edit ${g.name}` }),
            drop("group", g.name, `${base}/${kind}-groups/${encodeURIComponent(g.name)}`),
          ),
    ]);
  const chap = (/** @type {any} */ t) => (t.auth === "chap" ? state("good", "CHAP") : state("idle", "none"));
  const editInquiry = () =>
    ask(
      form(
        "How LUNs call themselves",
        [
          { key: "vendor", label: "Vendor", value: inquiry.inquiry.vendor, hint: "At most 8 characters." },
          {
            key: "product",
            label: "Product",
            value: inquiry.inquiry.product,
            hint: "At most 16 characters; hosts choose their settings by it.",
          },
        ],
        "Save",
        (values) => put("/api/san/v1/inquiry", values),
      ),
    );
  return [
    block(
      "Targets",
      able && button("New target\u2026", newTarget),
      table(
        "Targets",
        ["Alias", "iSCSI name", "Proof", "Interfaces", ""],
        targets.targets.map((/** @type {any} */ t) => [
          name(t.alias),
          name(t.iqn),
          chap(t),
          t.interfaces.join(", ") || "all",
          drop("target", t.alias || t.iqn, `${base}/targets/${encodeURIComponent(t.iqn)}`),
        ]),
        "No target: no host can find a LUN. Make one.",
      ),
    ),
    block(
      "Initiators",
      able && button("New initiator\u2026", newInitiator),
      table(
        "Initiators",
        ["Alias", "iSCSI name", "CHAP user", ""],
        initiators.initiators.map((/** @type {any} */ i) => [
          name(i.alias),
          name(i.initiator),
          name(i.chapuser),
          drop("initiator", i.alias || i.initiator, `${base}/initiators/${encodeURIComponent(i.initiator)}`),
        ]),
        "None is known by name; the group default has every one.",
      ),
    ),
    h(
      "div",
      { class: "columns" },
      block(
        "Target groups",
        able && button("New target group\u2026", () => group("target", null)),
        table("Target groups", ["Name", "Targets", ""], groupRows(tgroups.groups, "target")),
      ),
      block(
        "Initiator groups",
        able && button("New initiator group\u2026", () => group("initiator", null)),
        table("Initiator groups", ["Name", "Initiators", ""], groupRows(igroups.groups, "initiator")),
      ),
    ),
    block(
      "Identity",
      able && button("Edit\u2026", editInquiry),
      h(
        "p",
        {},
        "LUNs answer an INQUIRY with vendor ",
        h("code", {}, name(inquiry.inquiry.vendor)),
        " and product ",
        h("code", {}, name(inquiry.inquiry.product)),
        ". Which LUN is seen by whom is set at the LUN, under ",
        link("Shares", "shares"),
        ".",
      ),
    ),
  ];
}

/**
 * @param {AbortSignal} signal
 * @param {() => Promise<void>} again
 */
async function servicesPage(signal, again) {
  const { services } = await get("/api/service/v1/services", signal);
  const able = may("svc.allow_administer");
  const act = (/** @type {any} */ s, /** @type {string} */ verb) => async () => {
    const ends = s.clients ? ` It has ${s.clients} clients now.` : "";
    const done = await confirm(
      `${verb[0].toUpperCase()}${verb.slice(1)} ${s.name}?`,
      `Its clients are ended, after what they have in flight.${ends}`,
      verb,
      () => put(path`/api/service/v1/services/${s.name}/` + verb),
    );
    if (done) await again();
  };
  const edit = (/** @type {any} */ s) => async () => {
    const hint =
      s.name === "rest"
        ? "ADDRESS:PORT, separated by commas; empty: this machine alone. From the next start on."
        : "ADDRESS:PORT, separated by commas; empty: this machine alone.";
    const done = await form(
      `Where ${s.name} listens`,
      [{ key: "listen", label: "Addresses", value: s.listen.join(", "), optional: true, hint }],
      "Save",
      ({ listen }) =>
        put(path`/api/service/v1/services/${s.name}`, {
          listen: (listen ?? "")
            .split(",")
            .map((/** @type {string} */ a) => a.trim())
            .filter(Boolean),
        }),
    );
    if (done) await again();
  };
  const enable = (/** @type {any} */ s) => async () => {
    await put(path`/api/service/v1/services/${s.name}/enable`);
    await again();
  };
  const rows = services.map((/** @type {any} */ s) => [
    ...serviceRow(s),
    able &&
      h(
        "span",
        { class: "buttons" },
        button("Listen\u2026", edit(s), { "aria-label": `Where ${s.name} listens` }),
        s.name === "rest"
          ? null
          : s["<status>"] === "disabled"
            ? button("Enable", enable(s), { "aria-label": `Enable ${s.name}` })
            : [
                button("Restart\u2026", act(s, "restart"), { "aria-label": `Restart ${s.name}` }),
                button("Disable\u2026", act(s, "disable"), { "aria-label": `Disable ${s.name}` }),
              ],
      ),
  ]);
  return [block("Services", null, table("Services", ["Service", "State", "Clients>", "Addresses", ""], rows))];
}
