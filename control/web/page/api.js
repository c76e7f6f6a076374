// The REST API, asked as the page asks it: by the session's cookie, with the header that no other origin can send.

/** What the appliance says when it does not do what was asked. */
export class Fault extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const PAGE = { "X-Cenote-Page": "1" };

/** @type {() => void} */
let ended = () => {};

/**
 * What is done when the session has ended.
 * @param {() => void} action
 */
export function onSessionEnd(action) {
  ended = action;
}

/**
 * A path whose parts are encoded: path`/api/x/${name}`.
 * @param {TemplateStringsArray} fixed
 * @param {...(string | number)} parts
 */
export function path(fixed, ...parts) {
  return fixed.reduce((all, text, i) => all + encodeURIComponent(String(parts[i - 1])) + text);
}

/**
 * @param {string} method
 * @param {string} where
 * @param {any} [body]
 * @param {{signal?: AbortSignal, headers?: Record<string, string>}} [more]
 */
async function ask(method, where, body, more = {}) {
  /** @type {Record<string, string>} */
  const headers = { ...PAGE, ...more.headers };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(where, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      signal: more.signal,
    });
  } catch (error) {
    if (more.signal?.aborted) throw error;
    throw new Fault(0, "The appliance does not answer. Is it running?");
  }
  const text = await response.text();
  const value = response.headers.get("content-type")?.startsWith("application/json") ? JSON.parse(text) : text;
  if (response.ok) return value;
  const message = value?.fault?.message ?? `the appliance answered ${response.status}`;
  if (response.status === 401 && !more.headers) ended();
  throw new Fault(response.status, message);
}

/**
 * @param {string} where
 * @param {AbortSignal} [signal]
 */
export const get = (where, signal) => ask("GET", where, undefined, { signal });

/**
 * @param {string} where
 * @param {any} [body]
 */
export const post = (where, body = {}) => ask("POST", where, body);

/**
 * @param {string} where
 * @param {any} [body]
 */
export const put = (where, body = {}) => ask("PUT", where, body);

/** @param {string} where */
export const remove = (where) => ask("DELETE", where);

/** @typedef {{user: string, locked: boolean, look: boolean, permissions: string[], session_timeout: number}} Self */

/** @type {Self} */
export let self = { user: "", locked: false, look: false, permissions: [], session_timeout: 15 };

/** Whether there is a session; who it is of is in `self` then. */
export async function whoAmI() {
  const answer = await fetch("/api/access/v1/self", { headers: PAGE, cache: "no-store" }).catch(() => null);
  if (answer === null) throw new Fault(0, "The appliance does not answer. Is it running?");
  if (!answer.ok) return false;
  self = (await answer.json()).self;
  return true;
}

/**
 * Whether whoever is logged in has this permission on anything; the appliance decides again when it is asked.
 * @param {string} permission scope.permission
 */
export const may = (permission) => self.permissions.includes(permission);

/**
 * @param {string} user
 * @param {string} password
 */
export function logIn(user, password) {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  const encoded = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return ask("POST", "/api/access/v1", {}, { headers: { Authorization: `Basic ${encoded}` } });
}

/** @param {string} code */
export function logInByCode(code) {
  const clean = code.replace(/[^A-Za-z0-9-]/g, "");
  return ask("POST", "/api/access/v1", {}, { headers: { "X-Cenote-Code": clean } });
}

export const logOut = () => ask("DELETE", "/api/access/v1");
