// Builds the page from src into ../api/web. What it is made from and what came out is noted in built.sha256, which a test of Go's compares without
// Node; with --check nothing is written, and the checked-in files are compared with those that the sources give.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync, mkdirSync, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const web = "../api/web";
const noted = "built.sha256";

const made = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  outdir: web,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none", // licenses.txt has them whole
  write: false,
  logLevel: "warning",
});

const files = new Map(made.outputFiles.map((f) => [f.path.split("/").pop(), Buffer.from(f.contents)]));
for (const name of ["index.html", "icon.svg"]) files.set(name, readFileSync(join(here, "src", name)));
const licences = Object.keys(JSON.parse(readFileSync(join(here, "package.json"))).dependencies).map(
  (name) => `${name}\n\n${readFileSync(join(here, "node_modules", name, "LICENSE"))}`,
);
files.set("licenses.txt", Buffer.from(licences.join("\n\n")));

const sources = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json", ...readdirSync(join(here, "src")).map((name) => "src/" + name)];
const line = (path, content) => `${createHash("sha256").update(content).digest("hex")}  ${path}\n`;
const lines = [
  ...sources.map((path) => line(path, readFileSync(join(here, path)))),
  ...[...files].map(([name, content]) => line(`${web}/${name}`, content)),
];
const list = Buffer.from(lines.sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1)).join(""));

const all = [...[...files].map(([name, content]) => [join(here, web, name), content]), [join(here, noted), list]];
if (process.argv.includes("--check")) {
  const stale = all.filter(([path, content]) => !existsSync(path) || !readFileSync(path).equals(content)).map(([path]) => path);
  if (stale.length > 0) {
    console.error(`not what the sources give, run make ui:\n${stale.join("\n")}`);
    process.exit(1);
  }
} else {
  mkdirSync(join(here, web), { recursive: true });
  for (const [path, content] of all) writeFileSync(path, content);
}
