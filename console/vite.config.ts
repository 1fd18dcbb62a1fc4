import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const output = "../src/penstock/server/console/static";
const compressible = new Set([".js", ".css", ".svg"]);

/** Writes `FILE.gz` beside each asset, which the server sends to browsers that accept it. */
function gzipAssets(): Plugin {
  return {
    name: "gzip-assets",
    apply: "build",
    writeBundle(options) {
      const assets = join(options.dir ?? output, "assets");
      for (const name of readdirSync(assets)) {
        if (!compressible.has(extname(name))) continue;
        const file = join(assets, name);
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
      }
    },
  };
}

/** Loads the style of a component of Mantine together with the component. */
function stylesOfComponents(): Plugin {
  const classes = /@mantine\/core\/esm\/.*\/(\w+)\.module\.mjs(\?|$)/;
  return {
    name: "styles-of-components",
    transform: {
      filter: { id: classes },
      handler: (code, id) => ({ code: `import "@mantine/core/styles/${classes.exec(id)![1]}.css";\n${code}`, map: null }),
    },
  };
}

export default defineConfig({
  plugins: [react(), stylesOfComponents(), gzipAssets()],
  optimizeDeps: { exclude: ["@mantine/core"] },
  build: {
    outDir: output,
    emptyOutDir: true,
    manifest: "manifest.json",
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
    // a library that wraps its components at the top of a module keeps only those in use
    rolldownOptions: { treeshake: { manualPureFunctions: ["memo", "forwardRef", "createContext"] } },
  },
  server: { proxy: { "/api": "http://127.0.0.1:7077" } },
});
