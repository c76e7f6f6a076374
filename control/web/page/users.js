// Users and roles: who may log in, and what that lets them do.

import { button, h, name, state, table, visible } from "./dom.js";
import { get, may, path, post, put, remove, self } from "./api.js";
import { confirm, form, say } from "./dialog.js";
import { block } from "./configuration.js";

/**
 * @param {AbortSignal} signal
 * @param {() => Promise<void>} again
 */
export async function usersPage(signal, again) {
  const [users, roles] = await Promise.all([get("/api/user/v1/users", signal), get("/api/role/v1/roles", signal)]);
  const names = roles.roles.map((/** @type {any} */ r) => r.name);
  const ask = async (/** @type {Promise<boolean>} */ done) => {
    if (await done) await again();
  };
  const create = () =>
    ask(
      form(
        "New user",
        [
          { key: "logname", label: "Name to log in by" },
          { key: "fullname", label: "Full name", optional: true },
          { key: "initial_password", label: "Password", kind: "password", hint: "At least 8 bytes." },
        ],
        "Create",
        (values) => post("/api/user/v1/users", values),
      ),
    );
  const password = (/** @type {any} */ u) => async () => {
    const text =
      u.logname === self.user
        ? "All your sessions end, this one too: log in again with the new password."
        : "All sessions of that user end.";
    const done = await form(
      `New password of ${u.logname}`,
      [
        { key: "one", label: "Password", kind: "password", hint: "At least 8 bytes." },
        { key: "two", label: "Once more", kind: "password" },
      ],
      "Set",
      ({ one, two }) => {
        if (one !== two) throw new Error("The two are not the same.");
        return put(path`/api/user/v1/users/${u.logname}`, { initial_password: one });
      },
      { text },
    );
    if (!done) return;
    say(`The password of ${visible(u.logname)} is set.`);
    await again().catch(() => {});
  };
  const edit = (/** @type {any} */ u) => () =>
    ask(
      form(
        `Edit ${u.logname}`,
        [
          { key: "fullname", label: "Full name", value: u.fullname, optional: true },
          { key: "roles", label: "Roles", kind: "many", options: names, value: u.roles },
        ],
        "Save",
        (values) => put(path`/api/user/v1/users/${u.logname}`, values),
      ),
    );
  const drop = (/** @type {any} */ u) => () =>
    ask(
      confirm(`Remove user ${visible(u.logname)}?`, "Sessions and tokens of the user end.", "Remove", () =>
        remove(path`/api/user/v1/users/${u.logname}`),
      ),
    );
  const userRows = users.users.map((/** @type {any} */ u) => [
    name(u.logname),
    name(u.fullname),
    u.locked ? state("warn", "no password") : state("good", "can log in"),
    u.logname === "root" ? "everything" : name(u.roles.join(", ")),
    h(
      "span",
      { class: "buttons" },
      may("user.allow_changePassword") || u.logname === self.user
        ? button("Password\u2026", password(u), { "aria-label": `Password of ${u.logname}` })
        : null,
      may("user.allow_changeRoles") && u.logname !== "root"
        ? button("Edit\u2026", edit(u), { "aria-label": `Edit ${u.logname}` })
        : null,
      may("user.allow_changeProperties") && u.logname !== "root"
        ? button("Remove\u2026", drop(u), { class: "danger", "aria-label": `Remove ${u.logname}` })
        : null,
    ),
  ]);
  const newRole = () =>
    ask(
      form(
        "New role",
        [
          { key: "name", label: "Name" },
          { key: "description", label: "For whom it is", optional: true },
        ],
        "Create",
        (values) => post("/api/role/v1/roles", values),
      ),
    );
  const scopes = [...new Set(self.permissions.map((p) => p.split(".")[0]))];
  const authorize = (/** @type {any} */ r) => () =>
    ask(
      form(
        `What ${r.name} may do`,
        [
          {
            key: "permission",
            label: "Permission",
            kind: "choice",
            options: [...self.permissions].sort(),
            hint: `Of the fields ${scopes.join(", ")}; on everything in the field.`,
          },
        ],
        "Give",
        ({ permission }) => {
          const [scope, own] = permission.split(".");
          return post(path`/api/role/v1/roles/${r.name}/authorizations`, { scope, [own]: true });
        },
      ),
    );
  const gives = (/** @type {any} */ r) =>
    r.authorizations.map((/** @type {any} */ a) => {
      const all = Object.keys(a)
        .filter((k) => k.startsWith("allow_") && a[k] === true)
        .map((k) => k.slice(6));
      const on = ["pool", "project", "share", "name", "service"]
        .filter((k) => a[k] && a[k] !== "*")
        .map((k) => `${k} ${visible(a[k])}`);
      return `${a.scope}: ${all.join(", ")}${on.length ? ` on ${on.join(", ")}` : ""}`;
    });
  const dropRole = (/** @type {any} */ r) => () =>
    ask(
      confirm(`Remove role ${visible(r.name)}?`, "Users who have it lose what it gives.", "Remove", () =>
        remove(path`/api/role/v1/roles/${r.name}`),
      ),
    );
  const roleRows = roles.roles.map((/** @type {any} */ r) => [
    name(r.name),
    name(r.description),
    gives(r).join("; ") || "to look at everything",
    may("role.allow_changeAuths")
      ? h(
          "span",
          { class: "buttons" },
          button("Give\u2026", authorize(r), { "aria-label": `Give ${r.name} a permission` }),
          r.name === "basic"
            ? null
            : button("Remove\u2026", dropRole(r), { class: "danger", "aria-label": `Remove role ${r.name}` }),
        )
      : null,
  ]);
  return [
    block(
      "Users",
      may("user.allow_changeProperties") && button("New user\u2026", create, { id: "new-user" }),
      table("Users", ["Name", "Full name", "State", "Roles", ""], userRows),
    ),
    block(
      "Roles",
      may("role.allow_changeAuths") && button("New role\u2026", newRole),
      table("Roles", ["Name", "For whom", "Gives", ""], roleRows),
    ),
  ];
}
