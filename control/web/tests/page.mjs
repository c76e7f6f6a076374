// The page in a real browser, against a real daemon. `e2e` starts both and gives: the page's address, a one-time code, and a
// directory for photographs. It fails by saying what it saw.
//
//   log in by the code ─▶ hostile names ─▶ the guided database ─▶ each place: light, dark, phone, by keyboard ─▶ log out
//
// All along, a message of the browser about the policy, or an error of a script, is a failure.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createRequire } from "node:module";

const [, , npm, base, code, photographs] = process.argv;
const { chromium } = createRequire(join(npm, "node_modules/"))("playwright-core");
mkdirSync(photographs, { recursive: true });

const PLACES = [
  ["status", ".card"],
  ["shares", ".project"],
  ["shares/tank/shop", "#snapshot"],
  ["shares/tank/shop/luns/data", "#edit"],
  ["shares/database", "#g-deploy"],
  ["configuration/san", "table"],
  ["configuration/services", "table"],
  ["configuration/users", "#new-user"],
  ["maintenance/system", ".facts"],
  ["maintenance/devices", ".card table"],
  ["maintenance/advice", ".advice"],
  ["maintenance/events", "section"],
  ["maintenance/logs", "table"],
  ["analytics", "h1"],
];
/** What somebody may call things; each is legal where it is used. */
const MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>";
const HOSTILE = [MARKUP, "abc\u202egpj.exe", `long ${"x".repeat(240)}`];

// What a browser waits for has no end of its own everywhere.
setTimeout(() => {
  console.error("the page was not through in four minutes");
  process.exit(1);
}, 240000).unref();

const complaints = [];
function check(is, what) {
  if (!is) throw new Error(what);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
try {
  const context = await browser.newContext({ viewport: { width: 1360, height: 850 }, ignoreHTTPSErrors: true });
  const page = await context.newPage();
  // A question before anybody is in is answered with 401, as it must be.
  const isExpected = (text) => /status of (401|404)/.test(text);
  page.on(
    "console",
    (m) => ["error", "warning"].includes(m.type()) && !isExpected(m.text()) && complaints.push(m.text()),
  );
  page.on("pageerror", (e) => complaints.push(String(e)));
  page.on("dialog", (d) => {
    complaints.push(`a dialog: ${d.message()}`);
    d.dismiss();
  });

  const paint = await firstPaint();
  await page.goto(base);
  await page.waitForSelector("#code");
  await page.fill("#code", "wrong-wrong-one");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".problem")?.textContent?.includes("That is not the code"));
  await page.screenshot({ path: join(photographs, "login.png") });
  await page.fill("#code", code.toUpperCase());
  await page.keyboard.press("Enter");
  await page.waitForSelector(".card");

  const cookie = (await context.cookies())[0];
  check(cookie.httpOnly && cookie.sameSite === "Strict", `the cookie is open: ${JSON.stringify(cookie)}`);
  check(!(await page.evaluate(() => document.cookie)), "a script sees the cookie");
  // Not by the page's own fetch: the browser would ask for a password.
  const bare = (await context.request.get(`${base}api/access/v1/self`)).status();
  check(bare === 401, `without the page's header the cookie counts: ${bare}`);

  await makeHostile(page);
  await deploy(page);
  await advised(page);
  for (const [place, sign] of PLACES) await photograph(page, place, sign);
  await hostileIsText(page);
  await byKeyboard(page);

  await page.click("#logout");
  await page.waitForSelector(".login form:not([hidden])");
  const after = await page.evaluate(() =>
    fetch("/api/access/v1/self", { headers: { "X-Cenote-Page": "1" } }).then((r) => r.status),
  );
  check(after === 401, `the session has outlived its end: ${after}`);
  check(complaints.length === 0, `the browser complained:\n${complaints.join("\n")}`);
  check(paint < 1000, `the quickest first paint after ${paint} ms`);
  console.log(`first paint after ${Math.round(paint)} ms; ${PLACES.length} places, three photographs each`);
} finally {
  await browser.close();
}

/**
 * Milliseconds to the first paint of a browser that knows nothing of the page. What else the machine does can make one of them late, and its first is
 * also the first of the browser: the quickest of some counts, and no more are made once one is quick.
 */
async function firstPaint() {
  let quickest = Infinity;
  for (let i = 0; i < 8 && quickest >= 1000; i++) {
    const stranger = await browser.newContext({ viewport: { width: 1360, height: 850 }, ignoreHTTPSErrors: true });
    const page = await stranger.newPage();
    await page.goto(base);
    await page.waitForSelector("#code");
    await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
    quickest = Math.min(quickest, paint);
    await stranger.close();
  }
  return quickest;
}

/** By the API, since forms would not let all of them through. */
async function makeHostile(page) {
  const outcome = await page.evaluate(async (names) => {
    const headers = { "X-Cenote-Page": "1", "Content-Type": "application/json" };
    const all = [];
    for (const [i, alias] of names.entries()) {
      const ask = async (path, body) =>
        all.push((await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).status);
      await ask("/api/san/v1/iscsi/targets", { alias });
      await ask("/api/user/v1/users", { logname: `user${i}`, fullname: alias, initial_password: "long enough" });
      await ask("/api/role/v1/roles", { name: `role${i}`, description: alias });
    }
    return all;
  }, HOSTILE);
  check(
    outcome.some((status) => status === 201),
    `no hostile name was taken, so that none can be shown: ${outcome}`,
  );
}

async function deploy(page) {
  await page.goto(`${base}#shares/database`);
  await page.waitForSelector("#g-deploy");
  for (const [field, value] of [
    ["project", "shop"],
    ["data", "data"],
    ["dataSize", "300M"],
    ["log", "log"],
    ["logSize", "100M"],
    ["initiator", "iqn.1994-05.com.redhat:shop"],
  ]) {
    await page.fill(`#g-${field}`, value);
  }
  await page.click("#g-deploy");
  await page.waitForSelector(".commands", { timeout: 60000 });
  const commands = await page.textContent(".commands");
  check(/iscsiadm -m node -T iqn\.\S+ -p \S+:\d+ --login/.test(commands), `no command to log in by: ${commands}`);
  check(commands.match(/wwn-0x600144f0[0-9a-f]{24}/g)?.length >= 4, `LUNs without their GUIDs: ${commands}`);
  await page.click("#g-snapshot");
  await page.waitForFunction(() => /of both LUNs was taken/.test(document.body.textContent ?? ""), undefined, {
    timeout: 60000,
  });
  await page.click("#g-clone");
  await page.waitForFunction(() => document.querySelectorAll(".commands").length === 2, undefined, { timeout: 60000 });
  const second = await page.evaluate(() => document.querySelectorAll(".commands")[1].textContent ?? "");
  check(second.match(/wwn-0x600144f0[0-9a-f]{24}/g)?.length === 2, `clones without their GUIDs: ${second}`);
  await page.screenshot({ path: join(photographs, "deployed.png"), fullPage: true });
  const luns = await page.evaluate(async () => {
    const answer = await fetch("/api/storage/v1/pools/tank/projects/shop/luns", { headers: { "X-Cenote-Page": "1" } });
    const originals = (await answer.json()).luns.filter((l) => !l.name.endsWith("-copy"));
    return originals.map((l) => [l.name, l.volsize, l.volblocksize, l.logbias, l.targetgroup, l.initiatorgroup.join()]);
  });
  const wanted = [
    ["data", 300 * 2 ** 20, 16384, "latency", "shop-tgt", "shop-init"],
    ["log", 100 * 2 ** 20, 131072, "latency", "shop-tgt", "shop-init"],
  ];
  check(JSON.stringify(luns) === JSON.stringify(wanted), `other LUNs than were asked for: ${JSON.stringify(luns)}`);
  // Once more makes nothing twice.
  await page.click("#g-deploy");
  await page.waitForFunction(() => document.querySelectorAll(".steps .state").length >= 7);
  const again = await page.textContent(".steps");
  check(again.match(/was there already/g)?.length === 7, `a second deployment made something: ${again}`);
}

/** What is set wrong is there with all of its parts, and no longer once it is set right. */
async function advised(page) {
  const set = async (compression) => {
    const status = await page.evaluate(async (compression) => {
      const headers = { "X-Cenote-Page": "1", "Content-Type": "application/json" };
      const path = "/api/storage/v1/pools/tank/projects/shop/luns/log";
      return (await fetch(path, { method: "PUT", headers, body: JSON.stringify({ compression }) })).status;
    }, compression);
    check(status === 202, `compression=${compression} was answered with ${status}`);
    await page.goto(`${base}#status`);
    await page.goto(`${base}#maintenance/advice`);
    await page.waitForSelector("main .advice");
    return page.evaluate(() =>
      Array.from(document.querySelectorAll(".advice"), (e) => [e.getAttribute("aria-label"), e.textContent ?? ""]),
    );
  };
  const label = "compression-off of tank/shop/log";
  const [, text] = (await set("off")).find(([of]) => of === label) ?? [];
  for (const part of ["Seencompression=off", "Costs", "Cenotecenote zfs set compression=on tank/shop/log", "Undo"])
    check(text?.includes(part), `no '${part}' in the advice: ${text}`);
  const left = await set("on");
  check(!left.some(([of]) => of === label), `what was set right is still advised: ${JSON.stringify(left)}`);
}

async function photograph(page, place, sign) {
  await page.setViewportSize({ width: 1360, height: 850 });
  await page.goto(`${base}#${place}`);
  await page.waitForSelector(`main ${sign}`, { timeout: 30000 });
  await page.evaluate(() => document.querySelectorAll(".message").forEach((m) => m.remove()));
  const file = place.replaceAll("/", "_");
  for (const [kind, colorScheme, width, height] of [
    ["light", "light", 1360, 850],
    ["dark", "dark", 1360, 850],
    ["phone", "light", 360, 780],
  ]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    await page.evaluate(() => scrollTo(0, 0));
    await page.waitForTimeout(250);
    await page.screenshot({ path: join(photographs, `${file}_${kind}.png`), fullPage: kind === "phone" });
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(beyond <= 0, `${place} is ${beyond} pixels wider than a ${kind} screen`);
  }
  const nameless = await page.evaluate(() =>
    Array.from(document.querySelectorAll("main button, main input, main select, main a, main canvas"), (e) => e)
      .filter(
        (e) =>
          !(
            e.textContent?.trim() ||
            e.getAttribute("aria-label") ||
            (e.id && document.querySelector(`label[for="${e.id}"]`)) ||
            e.closest("label")
          ),
      )
      .map((e) => e.outerHTML),
  );
  check(nameless.length === 0, `${place}: a screen reader has no name for ${nameless.join(", ")}`);
}

/** What was named after markup is read as it was written, and nothing of it became an element. */
async function hostileIsText(page) {
  for (const place of ["configuration/san", "configuration/users"]) {
    await page.goto(`${base}#${place}`);
    await page.waitForFunction(() => document.querySelectorAll("main table").length >= 2);
    const made = await page.evaluate(() => document.querySelectorAll("main img, main script").length);
    check(made === 0, `${place}: a name became ${made} elements`);
    const text = await page.textContent("main");
    check(!text.includes("\u202e"), `${place}: a mark that turns what follows is shown as it is`);
  }
  const all = await page.textContent("main");
  check(all.includes(MARKUP), "the name with markup in it is not shown as it was written");
}

/** From the top of the page the second link of its places, by keys alone; a dialog opens, is left, and gives the focus back. */
async function byKeyboard(page) {
  await page.setViewportSize({ width: 1360, height: 850 });
  await page.goto(`${base}#status`);
  await page.waitForSelector(".card");
  await page.focus("#nav-shares");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#new-project");
  await page.focus("#new-project");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog[open]", { state: "detached" });
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open]");
  await page.fill("dialog input", "by-keys");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() =>
    Array.from(document.querySelectorAll(".project")).some((p) => p.getAttribute("aria-label") === "Project by-keys"),
  );
}
