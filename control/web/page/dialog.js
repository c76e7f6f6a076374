// Questions and forms over the page, and short messages below it.

import { button, fill, h, visible } from "./dom.js";

/**
 * @typedef {object} Field
 * @property {string} key
 * @property {string} label
 * @property {"text" | "size" | "choice" | "many" | "flag" | "password" | "number"} [kind]
 * @property {any} [value]
 * @property {[string, string][] | string[]} [options] of a choice: value, label
 * @property {string} [hint]
 * @property {boolean} [optional]
 */

let count = 0;

/**
 * Asks for the fields' values, and lets `act` do what is to be done with them: when it fails, the dialog says why and stays.
 * Resolves to whether it was done.
 * @param {string} title
 * @param {Field[]} fields
 * @param {string} verb
 * @param {(values: Record<string, any>) => Promise<any>} act
 * @param {{danger?: boolean, text?: string}} [more]
 * @returns {Promise<boolean>}
 */
export function form(title, fields, verb, act, more = {}) {
  return new Promise((resolve) => {
    const problem = h("p", { class: "problem", role: "alert" });
    const id = `dialog-${(count += 1)}`;
    const inputs = fields.map((field) => input(field, `${id}-${field.key}`));
    const submit = h("button", { class: more.danger ? "danger" : "primary" }, verb);
    const done = (/** @type {boolean} */ result) => {
      dialog.close();
      dialog.remove();
      resolve(result);
    };
    const send = async (/** @type {Event} */ event) => {
      event.preventDefault();
      submit.disabled = true;
      fill(problem);
      try {
        await act(Object.fromEntries(inputs.filter((i) => i.read() !== undefined).map((i) => [i.key, i.read()])));
        done(true);
      } catch (error) {
        fill(problem, /** @type {Error} */ (error).message);
        submit.disabled = false;
      }
    };
    const dialog = h(
      "dialog",
      {
        "aria-labelledby": id,
        oncancel: (/** @type {Event} */ e) => {
          e.preventDefault();
          done(false);
        },
      },
      h(
        "form",
        { onsubmit: send },
        h("h2", { id }, title),
        more.text ? h("p", {}, more.text) : null,
        h(
          "div",
          { class: "fields" },
          inputs.map((i) => i.row),
        ),
        problem,
        h(
          "div",
          { class: "buttons" },
          button("Cancel", () => done(false)),
          submit,
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
    const first = dialog.querySelector("input, select");
    if (first instanceof HTMLElement) first.focus();
  });
}

/**
 * @param {Field} field
 * @param {string} id
 */
function input(field, id) {
  const { key, label, kind = "text", value, options = [], hint, optional } = field;
  const hintId = hint ? `${id}-hint` : undefined;
  const described = { id, "aria-describedby": hintId };
  /** @type {any} */
  let control;
  /** @type {() => any} */
  let read;
  if (kind === "choice" || kind === "many") {
    const pairs = options.map((o) => (typeof o === "string" ? [o, o] : o));
    const chosen = new Set(kind === "many" ? (value ?? []) : [value]);
    control = h(
      "select",
      { ...described, multiple: kind === "many", size: kind === "many" ? Math.min(5, Math.max(2, pairs.length)) : 1 },
      pairs.map(([v, text]) => h("option", { value: v, selected: chosen.has(v) }, text)),
    );
    read = () =>
      kind === "many" ? Array.from(control.selectedOptions, (/** @type {any} */ o) => o.value) : control.value;
  } else if (kind === "flag") {
    control = h("input", { ...described, type: "checkbox", checked: value === true });
    read = () => control.checked;
  } else {
    const type = kind === "password" ? "password" : "text";
    control = h("input", {
      ...described,
      type,
      value: value ?? "",
      required: !optional,
      spellcheck: false,
      autocomplete: kind === "password" ? "new-password" : "off",
    });
    read = () =>
      control.value === "" && optional ? undefined : kind === "number" ? Number(control.value) : control.value;
  }
  const row = h(
    "div",
    { class: kind === "flag" ? "field flag" : "field" },
    h("label", { htmlFor: id }, label),
    control,
    hint ? h("p", { class: "hint", id: hintId }, hint) : null,
  );
  return { key, row, read };
}

/**
 * A question to which the answer may be no.
 * @param {string} title
 * @param {string} text
 * @param {string} verb
 * @param {() => Promise<any>} act
 */
export const confirm = (title, text, verb, act) => form(title, [], verb, act, { danger: true, text });

/**
 * Says what the adviser says of settings that were just made.
 * @param {any} answer
 */
export function advised(answer) {
  for (const advice of answer?.advice ?? []) say(`${visible(advice.about)}: ${visible(advice.seen)}: ${visible(advice.costs)}`);
  return answer;
}

const messages = h("div", { id: "messages", role: "status", "aria-live": "polite" });

/** @param {string} text */
export function say(text) {
  if (!messages.isConnected) document.body.append(messages);
  const own = h(
    "div",
    { class: "message" },
    h("span", {}, text),
    button("Dismiss", () => own.remove(), { class: "plain" }),
  );
  messages.append(own);
  while (messages.children.length > 3) messages.firstChild?.remove();
  setTimeout(() => own.remove(), 12000);
}
