// A page of the daemon in a real browser, logged in by a one-time code, for as long as a piece of work takes.

import { createRequire } from "node:module";

/**
 * The process ends with an error when it takes longer than three minutes.
 *
 * @param {string[]} how where npm's packages are, the page's address, and the code
 * @param {{width: number, height: number}} viewport
 * @param {(page: any) => Promise<void>} work
 */
export async function loggedIn([npm, base, code], viewport, work) {
  const { chromium } = createRequire(`${npm}/node_modules/`)("playwright-core");
  setTimeout(() => {
    console.error("it was not through in three minutes");
    process.exit(1);
  }, 180000).unref();
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  try {
    const page = await (await browser.newContext({ viewport, timezoneId: "UTC" })).newPage();
    await page.goto(base);
    await page.fill("#code", code);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".card");
    await work(page);
  } finally {
    await browser.close();
  }
}
