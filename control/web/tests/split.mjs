// What a performance engineer does with the page: a client whose requests are limited to 512 KiB reads a LUN of 1 MiB blocks, the
// size heat map shows it, the client is set right, and the page shows that too. The figures are those on the page.
//
// A record is read whole whatever part of it is asked for, so that sizes at the disks stay; what falls is bytes of disks per byte of
// the client.

import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { createRequire } from "node:module";

const [, , npm, base, code, photographs, portal] = process.argv;
const { chromium } = createRequire(join(npm, "node_modules/"))("playwright-core");
setTimeout(() => {
  console.error("it was not through in five minutes");
  process.exit(1);
}, 300000).unref();
const STATISTICS = ["iscsi.ops[size]", "io.ops[size]", "iscsi.bytes", "io.bytes"];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
let client;
try {
  const page = await (await browser.newContext({ viewport: { width: 1500, height: 900 } })).newPage();
  await page.goto(base);
  await page.fill("#code", code);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".card");
  const iqn = await page.evaluate(async () => {
    const headers = { "X-Cenote-Page": "1", "Content-Type": "application/json" };
    const post = async (path, body) => {
      const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
      if (!answer.ok) throw new Error(await answer.text());
      return answer.json();
    };
    const { target } = await post("/api/san/v1/iscsi/targets", { alias: "split" });
    await post("/api/storage/v1/pools/tank/projects", { name: "split", compression: "off" });
    await post("/api/storage/v1/pools/tank/projects/split/luns", {
      name: "whole",
      volsize: "1G",
      volblocksize: "1M",
      sparse: true,
    });
    return target.iqn;
  });
  const lun = `iscsi://${portal}/${iqn}/0`;
  const filled = spawnSync("qemu-io", ["-f", "raw", "-c", "write -P 7 0 512M", "-c", "write -P 7 512M 512M", lun], {
    encoding: "utf8",
  });
  if (filled.status !== 0) throw new Error(`cannot fill the LUN: ${filled.stderr}${filled.stdout}`);

  await page.goto(`${base}#analytics/new/${STATISTICS.map(encodeURIComponent).join("/")}`);
  await page.waitForFunction((n) => document.querySelectorAll("cenote-graph").length === n, STATISTICS.length);
  await page.selectOption(".toolbar select", "60");
  const split = await read(page, lun, 1024, "split");
  const whole = await read(page, lun, 2048, "whole");
  console.log(`512K: ${JSON.stringify(split)}; 1M: ${JSON.stringify(whole)}`);
  if (split.size !== "512K") throw new Error(`the page shows requests of ${split.size} where the client sends 512K`);
  if (whole.size !== "1M") throw new Error(`the page shows requests of ${whole.size} where the client sends 1M`);
  if (!(whole.perByte < split.perByte * 0.8))
    throw new Error(`disks read ${split.perByte} bytes for one before, and ${whole.perByte} after`);
} finally {
  client?.kill();
  await browser.close();
}

/** Half a minute of cold random reads of so many sectors, as the last 15 seconds of the page show them. */
async function read(page, lun, sectors, word) {
  client = spawn("iscsi-perf", ["-r", "-m", "4", "-b", String(sectors), "-t", "30", lun], { stdio: "ignore" });
  await page.waitForTimeout(20000);
  await page.screenshot({ path: join(photographs, `analytics_${word}.png`) });
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  await page.keyboard.press("p");
  await page.waitForTimeout(1500);
  const seen = await page.evaluate(() => {
    const graph = (name) =>
      Array.from(document.querySelectorAll("cenote-graph")).find((g) => g.querySelector("code")?.textContent === name);
    const number = (text) => {
      const [, value, unit] = /([\d.]+)([kKMGT]?)/.exec(text) ?? [];
      return Number(value) * ({ k: 1000, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 }[unit] ?? 1);
    };
    const sizes = Array.from(graph("iscsi.ops[size]")?.querySelectorAll(".values li") ?? [], (li) => [
      li.dataset.key,
      number(li.querySelector(".value")?.textContent ?? ""),
    ]);
    const average = (name) => number(graph(name)?.querySelector(".figures")?.textContent.split("average")[1] ?? "");
    return {
      size: sizes.sort((a, b) => b[1] - a[1])[0]?.[0] ?? "none",
      client: average("iscsi.bytes"),
      disks: average("io.bytes"),
    };
  });
  client.kill();
  await page.keyboard.press("n");
  await page.selectOption(".toolbar select", "60");
  return { ...seen, perByte: Number((seen.disks / seen.client).toFixed(2)) };
}
