// Reads one release of tacit in JavaScript: values with their intervals, and what its certificate says.
//
//   node read_release.mjs out/demo "people by region"
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

// A CSV file with quotes, as tacit writes it: one record a line, unless a quoted cell contains a line break.
export function parseCsv(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^,\n"]*))(,|\n|$)/g)) {
    rows.at(-1).push(quoted !== undefined ? quoted.replaceAll('""', '"') : plain);
    if (end === "\n") rows.push([]);
    if (end === "") break;
  }
  return rows.filter((row) => row.length > 1 || row[0]);
}

export function readRelease(folder, name) {
  const stem = name.replaceAll(" ", "-");
  const bytes = readFileSync(join(folder, "values", `${stem}.csv`));
  const certificate = JSON.parse(readFileSync(join(folder, "certificates", `${stem}.json`), "utf8"));
  if (createHash("sha256").update(bytes).digest("hex") !== certificate.values.sha256) {
    throw new Error("the values are not the ones of the certificate");
  }
  const [heads, ...rows] = parseCsv(bytes.toString("utf8"));
  const values = rows.map((row) => Object.fromEntries(heads.map((head, i) => [head, row[i]])));
  const { guarantee, intervals, unit, meaning } = certificate;
  return { values, confidence: intervals.confidence, bound: guarantee.bound, unit, meaning };
}

if (process.argv.length === 4) {
  const release = readRelease(process.argv[2], process.argv[3]);
  console.log(JSON.stringify({ rows: release.values.length, first: release.values[0], confidence: release.confidence, unit: release.unit }));
}
