// Files as a tree: from the menu, by the slices of the pie and by the list, and back; told on the standard output.

import { writeFileSync } from "node:fs";
import { loggedIn } from "./logged_in.mjs";

const [, , npm, base, code, photographs, late, statistic, ...way] = process.argv;

await loggedIn([npm, base, code], { width: 1300, height: 800 }, async (page) => {
  await page.goto(`${base}#analytics/new/${encodeURIComponent(statistic)}`);
  await page.waitForSelector("cenote-graph .values li");
  await page.click('[aria-label="Break down or export"]');
  await page.click('[role="menuitem"]:has-text("As a hierarchy")');
  const names = () =>
    page.evaluate(() =>
      Array.from(document.querySelectorAll("cenote-graph .values li:not(.way) .name"), (name) => name.textContent),
    );
  /** The place of the greatest slice: it begins at the top and goes to the right. */
  const slice = async () => {
    const box = await page.locator("cenote-graph canvas").boundingBox();
    return [box.x + box.width / 2 + 20, box.y + box.height / 2 - 5];
  };
  const levels = [];
  for (const [i, name] of way.entries()) {
    await page.waitForSelector(`cenote-graph .values li:not(.way) .name:has-text("${name}")`);
    levels.push(await names());
    // Once by the pie, then by the list.
    if (i === 0) await page.mouse.click(...(await slice()));
    else await page.click(`cenote-graph .values li:not(.way) button:has-text("${name}")`);
  }
  await page.waitForFunction(() => document.querySelectorAll("cenote-graph .values li:not(.way)").length > 1);
  // The list keeps its order below a pointer that rests on it; a file that is written from now on stands at its end.
  writeFileSync(late, "");
  await page.waitForSelector('cenote-graph .values li:last-child .name:has-text("late")');
  await page.mouse.move(5, 5);
  await page.evaluate(() => document.activeElement?.blur());
  await page.waitForSelector('cenote-graph .values li.way + li .name:has-text("data")');
  levels.push(await names());
  await page.mouse.move(...(await slice()));
  await page.waitForSelector("cenote-graph .tip:not([hidden])");
  const tip = await page.textContent("cenote-graph .tip");
  await page.screenshot({ path: `${photographs}/hierarchy.png` });
  await page.click("cenote-graph .way button");
  await page.waitForFunction((n) => document.querySelectorAll("cenote-graph .way button").length === n, 1);
  const back = await names();
  await page.setViewportSize({ width: 390, height: 800 });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForTimeout(300);
  await page.screenshot({ path: `${photographs}/hierarchy-phone.png` });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  await page.setViewportSize({ width: 1300, height: 800 });
  await page.click('[aria-label="Break down or export"]');
  await page.click('[role="menuitem"]:has-text("Over time")');
  await page.waitForFunction(() => document.querySelector("cenote-graph .way") === null);
  const flat = await names();
  console.log(JSON.stringify({ levels, tip, back, flat, wide }));
});
