"use strict";
const byId = (id) => document.getElementById(id);
const ALL = "*"; // no cell is that
const DECADES = { condition: { test: "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-9", value: 0.4 }, value: 0.08 };
const OURS = { condition: { test: "test(/^Octopus(?!, entered)/, datum.method)", value: 3 }, value: 1.5 };
const SHAPES = { o: "circle", s: "square", D: "diamond", d: "M0,-1L.6,0L0,1L-.6,0Z", "^": "triangle-up", v: "triangle-down", "<": "triangle-left", ">": "triangle-right", P: "cross",
  X: "M-.7,-1L0,-.3L.7,-1L1,-.7L.3,0L1,.7L.7,1L0,.3L-.7,1L-1,.7L-.3,0L-1,-.7Z", p: "M0,-1L.95,-.31L.59,.81L-.59,.81L-.95,-.31Z", h: "M0,-1L.87,-.5L.87,.5L0,1L-.87,.5L-.87,-.5Z",
  "*": "M0,-1L.24,-.32L.95,-.31L.38,.12L.59,.81L0,.4L-.59,.81L-.38,.12L-.95,-.31L-.24,-.32Z" };
let data, ids, rows, tables = {}, plots = [];

async function unpacked(name) {
  const bytes = Uint8Array.from(atob(byId(`packed-${name}`).textContent), (one) => one.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function load() {
  data = JSON.parse(await unpacked("data"));
  let before = []; // places are steps from those of the trace before
  data.traces = data.traces.map((steps) => (before = steps.map((step, i) => step + (before[i] ?? 0))));
  ids = new Map(data.traces.map((lines, index) => [data.lines[lines[0]], index]));
  const names = Object.keys(data.numbers);
  rows = data.traces.map((trace, i) => ({ i, ...shownIn(trace), ...Object.fromEntries(names.map((name) => [name, data.numbers[name][i]])) }));
  openTrace();
  if (!byId("packed-vega")) return;
  for (const name of ["vega", "vega-lite"]) {
    document.head.append(Object.assign(document.createElement("script"), { textContent: await unpacked(name) }));
  }
  document.head.prepend(Object.assign(document.createElement("style"), { textContent: await unpacked("datatables-style") }));
  const source = URL.createObjectURL(new Blob([await unpacked("datatables")], { type: "text/javascript" }));
  makeTables((await import(source)).default);
  for (const home of document.querySelectorAll(".chart")) {
    makeChart(home);
    await new Promise((next) => setTimeout(next)); // the page stays awake between two charts
  }
}

/* Values and texts stand in the traces alone. */
function shownIn(trace) {
  const after = (name) => trace.map((line) => data.lines[line]).find((line) => line.startsWith(name))?.slice(16) ?? "";
  const [, text, interval] = after("  shown as:").match(/^(.*?)(?: \[(.*)\])?$/), [, ...ends] = after("  value:").match(/^(\S*?)(?:, (\S+) to (\S+))? \(/) ?? [];
  const [value, low, high] = [0, 1, 2].map((i) => (ends[i] && Number.isFinite(+ends[i]) ? +ends[i] : null));
  return { text, interval: interval ?? "", value, low, high };
}

/* Light and dark: as the system has it, until somebody chooses. */
function setTheme(dark) {
  document.documentElement.className = dark ? "dark" : "light";
  byId("theme").setAttribute("aria-pressed", dark);
  plots.forEach((draw) => draw());
}
function watchTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", () => setTheme(system.matches));
  byId("theme").hidden = false;
  byId("theme").addEventListener("click", () => setTheme(document.documentElement.className !== "dark"));
  setTheme(system.matches);
}

/* A trace has an address, so links, the keyboard and the way back work by themselves. */
const traceOf = (name) => data.claims[name] ?? data.traces[ids.get(name)];
const addressOf = (row) => `#trace:${data.lines[data.traces[row.i][0]]}`;
function openTrace() {
  const name = decodeURIComponent(location.hash).match(/^#trace:(.+)/)?.[1], dialog = byId("trace");
  const lines = name && data && traceOf(name);
  if (!lines) return dialog.close();
  byId("trace-title").textContent = `octopus trace ${name}`;
  dialog.querySelector("pre").textContent = lines.map((line) => data.lines[line]).join("\n");
  if (!dialog.open) dialog.showModal();
}
byId("trace").addEventListener("close", () => {
  if (location.hash.startsWith("#trace:")) history.replaceState(null, "", location.pathname + location.search);
});
addEventListener("hashchange", openTrace);
addEventListener("click", (event) => { // the same trace again is no change of the address
  if (location.hash && event.target.closest?.("a")?.hash === location.hash) openTrace();
});

/* Figures, as large as they are. */
addEventListener("click", (event) => {
  const figure = event.target.closest?.(".figures button"), dialog = byId("large");
  if (!figure) return;
  dialog.querySelector("img").replaceWith(figure.querySelector("img").cloneNode());
  dialog.showModal();
});

/* Tables. */
function makeSelect(home, title, options, change, value) {
  const select = document.createElement("select"), label = document.createElement("label");
  select.append(...options.map(([name, text]) => new Option(text ?? name, name, false, name === value)));
  select.addEventListener("change", () => change(select.value));
  label.append(title, select);
  home.append(label);
  return select;
}
function makeTables(DataTable) {
  const link = (row) => Object.assign(document.createElement("a"), { href: addressOf(row), textContent: row.text }).outerHTML;
  const layout = { topStart: "pageLength", topEnd: "search", bottomStart: "info", bottomEnd: "paging" };
  const common = { autoWidth: false, layout, order: [], pageLength: 25, lengthMenu: [10, 25, 100, 500] };
  const value = (_, kind, row) => (kind === "display" ? link(row) : kind === "filter" ? row.text : row.value);
  const columns = ["machine", "study", "workload", "n", "method", "quantity", "layer"].map((name) => ({ data: name, render: DataTable.render.text() }));
  columns.push({ data: "value", type: "num", render: value, className: "value" });
  columns.push({ data: "interval", orderable: false, className: "value" });
  columns[3].type = "num";
  tables.claims = new DataTable("#claims-table", common);
  tables.numbers = new DataTable("#numbers-table", { ...common, data: rows, columns, deferRender: true });
  for (const [name, table] of Object.entries(tables)) {
    table.table().container().querySelector("nav")?.setAttribute("aria-label", `Pages of the ${name}`);
    table.columns("[data-filter]").every(function () {
      const options = this.data().unique().sort().toArray().filter(Boolean).map((one) => [one]);
      const change = (text) => this.search(text === ALL ? "" : text, { exact: text !== ALL }).draw();
      const select = makeSelect(byId(`${name}-filters`), this.title(), [[ALL, "All"], ...options], change, ALL);
      select.dataset.column = this.title();
    });
  }
}

/* Charts: one quantity of a study, by method; over n where there are several. */
function viewsOf({ study, first, quantity }) {
  const views = new Map(), known = new Map();
  for (const row of rows.filter((one) => one.study === study && one.value !== null && one.machine !== "published")) {
    const name = [row.quantity, row.layer, row.unit].filter(Boolean).join(", ");
    // What is of all GPUs has two names, with their number and without; other methods may well agree to the last digit.
    const base = row.method.replace(/ \d+$/, ""), same = [name, row.machine, row.workload, row.n, base, row.value, row.interval].join("|");
    const others = known.get(same) ?? [];
    if (others.some((one) => (one === base) !== (row.method === base))) continue;
    known.set(same, [...others, row.method]);
    views.set(name, [...(views.get(name) ?? []), row]);
  }
  const drawn = [...views].filter(([, view]) => view.some((row) => row.drawn || row.quantity === quantity)); // the table has the others
  const weight = ([, view]) => view.length + (view.some((row) => row.machine === first && row.quantity === quantity) ? rows.length : 0);
  return new Map((drawn.length ? drawn : [...views]).sort((a, b) => weight(b) - weight(a)));
}
function makeChart(home) {
  const views = viewsOf(home.dataset), filters = home.querySelector(".filters");
  if (!views.size) return;
  home.hidden = false;
  const chosen = { view: views.keys().next().value };
  const rowsOf = (...names) => views.get(chosen.view).filter((row) => names.every((name) => [ALL, row[name]].includes(chosen[name])));
  const draw = () => plot(home, rowsOf("machine", "workload"), chosen.view);
  const choose = (name, title, part, wanted, change) => {
    const options = [...new Set(part.map((row) => row[name]))];
    chosen[name] = [ALL, ...options].find((one) => one === wanted) ?? options.find((one) => one.startsWith(`${wanted}, `)) ?? options[0];
    makeSelect(filters, title, [...options.map((one) => [one, one || "any"]), [ALL, "All"]], change, chosen[name]);
  };
  const narrow = (machine) => {
    const at = [...filters.querySelectorAll("select")].indexOf(document.activeElement), part = rowsOf();
    const [machines, methods] = ["machine", "method"].map((name) => new Set(part.map((row) => row[name])).size);
    const first = machines > 1 && machines * methods < 25 ? ALL : home.dataset.first;
    filters.replaceChildren();
    makeSelect(filters, "Quantity", [...views.keys()].map((name) => [name]), (name) => { chosen.view = name; narrow(); }, chosen.view);
    choose("machine", "Machine", part, machine ?? first, narrow);
    choose("workload", "Workload", rowsOf("machine"), home.dataset.workload, (one) => { chosen.workload = one; draw(); }); // those that the machine has
    const table = Object.assign(document.createElement("button"), { type: "button", textContent: "Show in the table" });
    table.addEventListener("click", () => showInTable({ Study: home.dataset.study, Quantity: views.get(chosen.view)[0].quantity }));
    filters.append(table);
    filters.querySelectorAll("select")[at]?.focus();
    draw();
  };
  plots.push(draw);
  narrow();
}
function showInTable(wanted) {
  for (const select of byId("numbers-filters").querySelectorAll("select")) {
    select.value = wanted[select.dataset.column] ?? ALL;
    select.dispatchEvent(new Event("change"));
  }
  location.hash = "#numbers";
}
function plot(home, part, title) {
  const count = (name) => new Set(part.map((row) => row[name])).size;
  const overN = count("n") > 2, many = count("machine") > 1;
  const css = getComputedStyle(document.body), text = css.color;
  const differing = new Set(part.filter((row) => row.differs).map((row) => row.method));
  const called = (row, name) => (name === "method" && differing.has(row.method) ? `${row.method} \u2020` : row[name]);
  const values = part.map((row) => ({ ...row, low: row.low ?? row.value, high: row.high ?? row.value,
    name: ["method", "workload", overN ? "machine" : "n"].filter((name) => row[name] && count(name) > 1).map((name) => called(row, name)).join(", ") || called(row, "method") || row.quantity,
    tip: `${row.machine}: ${[row.method, row.workload, row.n && `n = ${row.n}`, row.text, row.interval].filter(Boolean).join(", ")}` }));
  const low = Math.min(...values.map((row) => row.low)), high = Math.max(...values.map((row) => row.high));
  const scale = low > 0 && high > 10 * low ? { type: "log", nice: false, padding: 12 } : { zero: low > 0 && high > 2 * low };
  const [x, y] = overN ? ["y", "x"] : ["x", "y"], axis = { field: "value", type: "quantitative", scale, title, axis: { labelSeparation: 8, labelOverlap: "greedy", ...(part[0].unit === "bytes" ? { format: "~s" } : {}), ...(scale.type ? { gridOpacity: DECADES } : {}) } };
  const entry = 80 + 6.6 * Math.max(...values.map((row) => (overN ? row.name : row.machine).length)); // pixels of the longest
  const legend = overN || many ? { orient: "bottom", columns: Math.max(1, Math.floor(home.clientWidth / entry)), labelLimit: home.clientWidth - 60, symbolLimit: 60 } : null;
  const narrow = home.clientWidth < 600, lines = narrow ? Math.max(...values.map((row) => row.name.split(", ").length)) : 1;
  const names = [...new Map(values.map((row) => [row.name, row.method]))], asDrawn = overN && !many && count("workload") < 2 && count("method") > 1;
  const looks = names.map(([, method]) => data.looks[home.dataset.study]?.[method] ?? ["#6E6E6E", "o"]);
  const lighter = (one) => `light-dark(${one}, oklch(from ${one} max(l, 0.65) c h))`; // a dark line is lost on a dark page
  const onGround = ([one]) => (CSS.supports("color", lighter(one)) ? lighter(one) : one);
  const domain = names.map(([name]) => name), scheme = { scheme: overN && names.length > 10 ? "tableau20" : "tableau10", ...(overN ? { domain } : {}) };
  const color = { field: overN ? "name" : "machine", type: "nominal", title: null, legend, scale: asDrawn ? { domain, range: looks.map(onGround) } : scheme };
  const shape = { field: "name", type: "nominal", title: null, legend, scale: { domain, ...(asDrawn ? { range: looks.map(([, one]) => SHAPES[one] ?? "circle") } : {}) } }; // one legend with the colours
  const label = narrow ? { labelExpr: "split(datum.label, ', ')", labelLimit: home.clientWidth / 2 } : { labelLimit: home.clientWidth / 3 };
  const other = overN ? { field: "n", type: "quantitative", title: [...new Set(part.map((row) => row.counts))].join(", "), scale: { type: "log", nice: false, padding: 12 }, axis: { grid: false } } : { field: "name", type: "nominal", sort: null, title: null, axis: label };
  const encoding = { [x]: axis, [y]: other, color };
  const range = { mark: { type: "rule", aria: false }, encoding: { [x]: { ...axis, field: "low" }, [`${x}2`]: { field: "high" } } };
  const point = { mark: { type: "point", filled: true, size: 60, cursor: "pointer" }, encoding: { tooltip: { field: "tip" }, description: { field: "tip" }, ...(overN ? { shape } : {}) } };
  const joined = overN ? [{ mark: { type: "line", aria: false }, encoding: { strokeWidth: OURS } }] : [];
  const spec = { width: "container", padding: { left: 5, top: 5, bottom: 5, right: 16 }, ...(overN ? { height: 320 } : { height: { step: 4 + 14 * lines } }), background: null, data: { values }, encoding, layer: [...joined, range, point],
    config: { view: { stroke: null }, font: css.fontFamily, axis: { labelColor: text, titleColor: text, gridOpacity: 0.25, labelFontSize: 12, titleFontSize: 12 }, legend: { labelColor: text, labelFontSize: 12, symbolOpacity: 1 } } };
  const description = `${home.dataset.study}: ${title}, ${values.length} numbers${many ? "" : ` on ${part[0].machine}`}. A click on a point opens its trace; the table of numbers has them all.${differing.size ? " \u2020: the answer differs from the reference." : ""}`;
  home.querySelector("figcaption").textContent = description;
  const compiled = vegaLite.compile(spec, { logger: vega.logger(vega.Error) }).spec;
  const view = new vega.View(vega.parse(compiled), { renderer: "svg", container: home.querySelector(".plot"), hover: true }).description(description);
  view.addEventListener("click", (_, item) => { if (item?.datum?.i !== undefined) location.hash = addressOf(item.datum); });
  view.runAsync();
}

watchTheme();
load().catch((error) => {
  byId("status").textContent = `This browser shows the page without charts and sorting (${error.message}).`;
  throw error;
});
