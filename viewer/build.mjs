// Bundles the viewer into one script, with the notice that its license asks for. `node build.mjs [OUTPUT]`.
import { build } from "esbuild";
import { copyFileSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const notice = readFileSync(join(here, "node_modules/three/LICENSE"), "utf8").trim();
const version = JSON.parse(readFileSync(join(here, "node_modules/three/package.json"), "utf8")).version;

if (!process.argv[2]) {
  copyFileSync(join(here, "node_modules/three/LICENSE"), join(here, "../src/bellcrank/view/page/three.LICENSE.txt"));
}
await build({
  absWorkingDir: here,
  entryPoints: ["src/main.js"],
  outfile: process.argv[2] ?? join(here, "../src/bellcrank/view/page/viewer.js"),
  bundle: true, minify: true, format: "iife", target: "es2022", charset: "utf8", legalComments: "none",
  banner: { js: `/*! Bellcrank viewer. Contains three.js ${version}:\n\n${notice}\n*/` },
});
