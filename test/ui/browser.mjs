// What a browser must see of each page. One line a check: its name, a tab, and what was wrong with it (nothing: all is well).
import assert from "node:assert/strict";
import { join } from "node:path";
import { launch } from "./launch.mjs";

const { DEMO, CLUSTER, TROUBLE, STANDBY, WORKER, MANY, CAUSEWAY_PICTURES } = process.env;
const only = new RegExp(process.env.CAUSEWAY_CHECKS ?? ""); // of their names, for who works on the page
const patience = 60_000; // a machine under load is slow

const browser = await launch();

const desk = { width: 1280, height: 800 };
const phone = { width: 390, height: 844 };

// Opens a page of its own, has it looked at, and fails for anything that the browser complains of or that is asked of another host.
async function check(name, site, hash, look, { viewport = desk, colorScheme = "light" } = {}) {
  if (!only.test(name)) return;
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  const complaints = [];
  const expected = (text) => / (401|404|409|422|503) /.test(text) || text.includes("ERR_FAILED"); // refusals that the page itself tells of
  page.on("console", (m) => m.type() === "error" && !expected(m.text()) && complaints.push(m.text()));
  page.on("pageerror", (e) => complaints.push(e.message));
  page.on("request", (r) => r.url().startsWith(site) || r.url().startsWith("data:") || complaints.push("asked elsewhere: " + r.url()));
  let fault = "";
  try {
    await page.goto(`${site}/ui/#/${hash}`);
    await look(page);
    assert.deepEqual(complaints, []);
  } catch (err) {
    fault = String(err.message ?? err);
  }
  console.log(name + "\t" + fault.replaceAll("\n", "\\n"));
  await context.close();
}

const see = (page, text) => page.getByText(text).first().waitFor();
const dialog = (page) => page.getByRole("dialog");
const fill = (page, field, text) => dialog(page).getByLabel(field, { exact: true }).fill(text);
const press = (page, name, exact = true) => page.getByRole("button", { name, exact }).click();
const fits = async (page) => {
  const { wide, room } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, room: innerWidth }));
  assert.ok(wide <= room, `the page is ${wide} px wide, the screen ${room}`);
};

await check("a live mirror: rates, events, topics", DEMO, "", async (page) => {
  await see(page, /All is well: \d+ partitions/);
  await page.waitForFunction(() => /[1-9]\d* \/s/.test(document.querySelector(".figures")?.textContent ?? ""));
  await see(page, "topic_discovered");
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Topics" }).click();
  await page.locator("tbody tr").first().waitFor();
});

await check("a live mirror: pause and resume", DEMO, "topics", async (page) => {
  await page.locator("tbody th a").first().click();
  await page.getByRole("button", { name: /^Pause/ }).click();
  await dialog(page).getByRole("button", { name: "Pause" }).click();
  await see(page, /is paused\./);
  await page.locator(".verdict.odd", { hasText: "paused by an operator" }).waitFor();
  await page.getByRole("button", { name: /^Resume/ }).click();
  await dialog(page).getByRole("button", { name: "Resume" }).click();
  await page.locator(".verdict.good").waitFor();
});

await check("a live mirror: what it can't do it says", DEMO, "topics", async (page) => {
  await page.locator("tbody th a").first().click();
  await page.getByLabel("Actions of partition 0").click();
  await page.getByRole("button", { name: /^Reset .*-0$/ }).click();
  await fill(page, "To", "earliest");
  await dialog(page).getByRole("button", { name: "Reset" }).click();
  await see(page, /Refused \(409\)/);
});

await check("trouble is seen at once", CLUSTER, "", async (page) => {
  await page.locator(".verdict.bad", { hasText: "1 halted, 2 degraded" }).waitFor();
  const row = page.locator(".trouble li", { hasText: "topic-0001-2" });
  await row.getByText("MESSAGE_TOO_LARGE").waitFor();
  await see(page, "partition_halted");
  await see(page, "mirror-3");
});

await check("a write needs the token, and says so", CLUSTER, "", async (page) => {
  await press(page, "Retry topic-0001-2");
  await press(page, "Retry");
  await see(page, "This server changes nothing without its token.");
  await fill(page, "Token", "wrong");
  await press(page, "Retry");
  await see(page, "The server does not take this token.");
  await fill(page, "Token", "s3cret");
  await press(page, "Retry");
  await see(page, "topic-0001-2 is being tried.");
  await page.locator(".verdict.odd", { hasText: "2 degraded" }).waitFor();
  assert.ok(!(await page.content()).includes("s3cret"));
});

// The token is given once; the next writes of this page have it.
const withToken = async (page) => {
  await fill(page, "Token", "s3cret");
  await dialog(page).locator("button[type=submit]").click();
};

await check("a cluster is changed", CLUSTER, "topics", async (page) => {
  await press(page, "Add a topic");
  await fill(page, "Topic", "audit");
  await press(page, "Add");
  await withToken(page);
  await page.getByRole("link", { name: "audit" }).click();
  await page.getByLabel("Actions of partition 1").click();
  await press(page, "Move audit-1");
  await dialog(page).getByLabel("Worker", { exact: true }).selectOption("mirror-2");
  await press(page, "Move");
  await page.locator("tbody tr", { hasText: "mirror-2" }).waitFor();
  await press(page, "Reset audit-1");
  await fill(page, "To", "nowhere");
  await press(page, "Reset");
  await see(page, /Refused \(422\)/);
  await fill(page, "To", "latest");
  await press(page, "Reset");
  await press(page, "Remove audit");
  await press(page, "Remove");
  await see(page, "is not mirrored here");
  await page.getByRole("link", { name: "Events", exact: true }).click();
  await see(page, "an operator has set the position: latest");
});

await check("workers are drained, and what moved is told", CLUSTER, "workers", async (page) => {
  await press(page, "Drain mirror-2");
  await press(page, "Drain");
  await withToken(page);
  await page.locator("tbody tr", { hasText: "draining" }).waitFor();
  await press(page, "Enable mirror-2");
  await press(page, "Enable");
  await page.getByRole("button", { name: "Drain mirror-2" }).waitFor();
  await see(page, "worker mirror-4 left or was lost");
  const moves = page.locator(".event", { hasText: "rebalance_started" }).last().locator(".why");
  assert.deepEqual((await moves.allTextContents()).slice(-1), ["topic-0002-3 from mirror-1 to mirror-3 (balance)"]);
  assert.equal(await moves.count(), 4);
  await press(page, "Rebalance");
  await dialog(page).getByRole("button", { name: "Rebalance" }).click();
  await see(page, "2 partitions get another owner"); // comes by itself
});

await check("topics are sorted and filtered, and the address says so", CLUSTER, "topics?filter=paused", async (page) => {
  await page.getByRole("link", { name: "topic-0005" }).waitFor();
  assert.equal(await page.locator("tbody tr").count(), 1);
  await page.getByLabel("Filter").fill("");
  await page.getByRole("link", { name: "topic-0000" }).waitFor();
  await page.getByRole("button", { name: /^Behind/ }).click();
  await page.locator("tbody tr").first().getByRole("link", { name: "topic-0001" }).waitFor();
  assert.match(page.url(), /sort=-lag_seconds/);
  await page.goBack();
  await page.locator("tbody tr").first().getByRole("link", { name: "topic-0000" }).waitFor();
});

await check("a lag that is not known is not 0", CLUSTER, "topics/topic-0006", async (page) => {
  const row = page.locator("tr:has(td[data-label=Lag])").first();
  await row.waitFor();
  assert.deepEqual(await row.locator("td[data-label=Lag], td[data-label=Behind]").allTextContents(), ["unknown", "unknown"]);
});

await check("by keyboard alone", CLUSTER, "", async (page) => {
  await see(page, "Needs attention");
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "To the content");
  for (let i = 0; i < 40 && (await page.evaluate(() => document.activeElement.getAttribute("href"))) !== "#/workers"; i++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Drain mirror-1" }).waitFor();
  assert.equal(await focused(), "Workers");
  for (let i = 0; i < 40 && (await focused()) !== "Drain"; i++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await dialog(page).waitFor();
  await page.keyboard.press("Escape");
  await dialog(page).waitFor({ state: "hidden" });
  assert.equal(await focused(), "Drain");
});

await check("a standby leads to its leader", STANDBY, "topics", async (page) => {
  await see(page, "controller-1 leads");
  assert.equal(await page.getByRole("link", { name: "To the leader's page" }).getAttribute("href"), "http://127.0.0.1:1/ui/#/topics");
  assert.equal(await page.getByRole("button", { name: "Add a topic" }).count(), 0);
});

await check("a worker offers no changes", WORKER, "topics/topic-0000", async (page) => {
  await page.locator("tbody tr").first().waitFor();
  assert.equal(await page.getByRole("button", { name: /Pause/ }).count(), 0);
  assert.equal(await page.locator("details.menu").count(), 0);
});

await check("a process that does not answer is told of", WORKER, "", async (page) => {
  await see(page, "All is well");
  await page.route("**/api/v1/**", (r) => r.abort());
  await see(page, /No answer: the process can't be reached/);
  await page.unroute("**/api/v1/**");
  await see(page, "All is well");
});

for (const [name, hash] of [["overview", ""], ["topics", "topics"], ["topic", "topics/topic-0001"], ["workers", "workers"], ["events", "events"]]) {
  await check("on a phone, dark: " + name, CLUSTER, hash, async (page) => {
    await page.locator(".panel").first().waitFor();
    await page.locator("tbody tr, .event").first().waitFor();
    await fits(page);
  }, { viewport: phone, colorScheme: "dark" });
}

await check("2,000 topics with 20,000 partitions", MANY, "topics", async (page) => {
  await page.locator("tbody tr").first().waitFor();
  assert.equal(await page.locator("tbody tr").count(), 50);
  await press(page, "More →");
  await page.getByRole("link", { name: "topic-0050" }).waitFor();
  await page.getByLabel("Filter").fill("topic-1999");
  await page.locator("tbody th", { hasText: "topic-1999" }).waitFor();
});

if (CAUSEWAY_PICTURES) await pictures(CAUSEWAY_PICTURES);

// The pictures of docs/web.md: of the mirror that lives and of the cluster in trouble.
async function pictures(folder) {
  for (const [name, site, hash, options] of [
    ["overview", DEMO, "", {}],
    ["overview-dark", DEMO, "", { colorScheme: "dark" }],
    ["trouble", TROUBLE, "", {}],
    ["trouble-phone", TROUBLE, "", { viewport: phone }],
    ["topics", TROUBLE, "topics", {}],
    ["topic", TROUBLE, "topics/topic-0001", {}],
    ["workers", TROUBLE, "workers", {}],
    ["events", TROUBLE, "events", {}],
  ]) {
    await check("picture: " + name, site, hash, async (page) => {
      await page.locator(".panel").first().waitFor();
      await page.waitForTimeout(Number(process.env.CAUSEWAY_PICTURES_AFTER ?? 4000)); // for a curve of what is live
      await page.screenshot({ path: join(folder, name + ".png"), fullPage: true });
    }, options);
  }
}

await browser.close();
