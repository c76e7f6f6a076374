// How somebody gets in: by the one-time code that the appliance printed, or by name and password.

import { button, fill, h } from "./dom.js";
import { Fault, logIn, logInByCode } from "./api.js";

/**
 * @param {Element} root
 * @param {string} why shown above; empty at first
 * @param {() => void} then
 */
export function showLogin(root, why, then) {
  const problem = h("p", { class: "problem", role: "alert" }, why);
  const user = h("input", {
    id: "user",
    autocomplete: "username",
    value: "root",
    spellcheck: false,
    autocapitalize: "off",
  });
  const password = h("input", { id: "password", type: "password", autocomplete: "current-password" });
  const code = h("input", {
    id: "code",
    autocomplete: "one-time-code",
    spellcheck: false,
    autocapitalize: "off",
    placeholder: "abc-def-ghj",
    size: 14,
  });
  const attempt =
    (/** @type {() => Promise<any>} */ ask, /** @type {string} */ wrong) => async (/** @type {Event} */ event) => {
      event.preventDefault();
      fill(problem);
      try {
        await ask();
        then();
      } catch (error) {
        fill(problem, error instanceof Fault && error.status === 401 ? wrong : /** @type {Error} */ (error).message);
      }
    };
  const byPassword = h(
    "form",
    {
      onsubmit: attempt(() => logIn(user.value, password.value), "No such user, or not the password."),
      hidden: true,
      id: "by-password",
    },
    h("label", { htmlFor: "user" }, "User"),
    user,
    h("label", { htmlFor: "password" }, "Password"),
    password,
    h("button", { class: "primary" }, "Log in"),
    button("I have a one-time code", () => swap(true), { class: "plain" }),
  );
  const byCode = h(
    "form",
    {
      onsubmit: attempt(() => logInByCode(code.value), "That is not the code, or it was used, or its hour is over."),
      hidden: true,
      id: "by-code",
    },
    h("label", { htmlFor: "code" }, "One-time code"),
    code,
    h(
      "p",
      { class: "hint" },
      "\u201ccenote up\u201d printed it when it started; \u201ccenote page\u201d prints another.",
    ),
    h("button", { class: "primary" }, "Get in"),
    button("I have a password", () => swap(false), { class: "plain" }),
  );
  const swap = (/** @type {boolean} */ isCode) => {
    byCode.hidden = !isCode;
    byPassword.hidden = isCode;
    fill(problem);
    localStorage.setItem("login", isCode ? "code" : "password");
    (isCode ? code : user.value ? password : user).focus();
  };
  fill(
    root,
    h(
      "main",
      { class: "login" },
      h("h1", {}, "Cenote"),
      h("p", { class: "hint" }, location.host),
      problem,
      byPassword,
      byCode,
    ),
  );
  const before = why;
  swap(localStorage.getItem("login") !== "password");
  fill(problem, before);
}
