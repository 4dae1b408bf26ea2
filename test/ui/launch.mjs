// Starts Chromium, without a download: the system's, driven by the playwright-core that npm ci put below ui.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const { chromium } = createRequire(join(dirname(fileURLToPath(import.meta.url)), "../../ui/package.json"))("playwright-core");

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: [...(process.getuid() === 0 ? ["--no-sandbox"] : []), "--disable-gpu"], // root can have no sandbox
  });
