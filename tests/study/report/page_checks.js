// What test_page.py lets a browser do with the page; each check that fails gives what was found instead of `true`.
const faults = [];
console.error = console.warn = (...words) => faults.push(words.join(" "));
for (const name of ["error", "unhandledrejection", "securitypolicyviolation"]) {
  addEventListener(name, (event) => faults.push(String(event.message ?? event.reason ?? event.blockedURI)));
}
const pause = (test) => new Promise((done) => {
  let left = 200;
  const again = () => (test() || !left-- ? done() : setTimeout(again, 100));
  again();
});
const texts = (table, column) => [...document.querySelectorAll(`#${table} tbody tr`)].map((row) => row.cells[column].innerText);
async function check() {
  await pause(() => tables.numbers && document.querySelector("#numbers-table tbody tr"));
  const found = { loaded: !!tables.numbers };
  const all = tables.numbers.rows({ search: "applied" }).count();
  const room = (row) => 1e-6 * Math.abs(row.value); // ends have seven digits
  const holds = (row) => row.low - room(row) <= row.value && row.value <= row.high + room(row);
  const unread = rows.filter((row) => (row.value !== null && !row.text) || (row.interval && !holds(row)));
  found.read = (!unread.length && rows.some((row) => row.interval)) || unread.slice(0, 5).map((row) => JSON.stringify(row));

  const head = [...document.querySelectorAll("#numbers-table thead th")].find((one) => one.innerText.startsWith("Value"));
  for (const order of ["ascending", "descending"]) {
    head.click();
    await pause(() => head.getAttribute("aria-sort") === order);
  }
  const sorted = tables.numbers.rows({ order: "applied", search: "applied" }).data().toArray().map((row) => row.value).filter((value) => value !== null);
  found.sorted = sorted.every((value, i) => !i || sorted[i - 1] >= value) || sorted.slice(0, 9);
  found.saysSorted = head.getAttribute("aria-sort") === "descending" || head.outerHTML;

  const filter = document.querySelector("#numbers-filters [data-column=Study]");
  filter.value = "Arena";
  filter.dispatchEvent(new Event("change"));
  await pause(() => new Set(texts("numbers-table", 1)).size === 1);
  const shown = tables.numbers.rows({ search: "applied" }).count();
  found.filtered = (shown > 0 && shown < all && new Set(texts("numbers-table", 1)).size === 1) || shown;
  const verdict = document.querySelector("#claims-filters [data-column=Verdict]");
  verdict.value = "reproduced";
  verdict.dispatchEvent(new Event("change"));
  await pause(() => new Set(texts("claims-table", 1)).size === 1);
  found.claims = new Set(texts("claims-table", 1)).size === 1 || texts("claims-table", 1);

  const dialog = document.getElementById("trace"), link = document.querySelector("#numbers-table tbody a");
  link.click();
  await pause(() => dialog.open);
  found.traced = (dialog.open && link.hash.endsWith(dialog.innerText.match(/octopus trace (\S+)/)[1])) || dialog.innerText;
  found.readable = /shown as:[^]*derived by:/.test(dialog.innerText) || dialog.innerText;
  dialog.querySelector("button").click();
  await pause(() => !dialog.open);
  found.closed = !dialog.open;
  link.click();
  await pause(() => dialog.open);
  found.again = dialog.open;
  dialog.close();

  const large = document.getElementById("large"), picture = document.querySelector(".figures button");
  picture.click();
  found.large = (large.open && large.querySelector("img").src === picture.firstElementChild.src) || large.outerHTML;
  large.close();
  const number = rows.find((row) => row.interval && row.unit === "ms");
  found.parsed = (number.low <= number.value && number.value <= number.high && /^[\d.]+ .s$/.test(number.text)) || number;

  const chart = document.querySelector(".chart:not([hidden])");
  await pause(() => chart.querySelector("svg"));
  const marks = chart.querySelectorAll("svg [aria-roledescription=point]");
  found.drawn = (marks.length > 0 && [...marks].every((mark) => mark.getAttribute("aria-label"))) || chart.innerText;
  const charts = [...document.querySelectorAll(".chart:not([hidden])")];
  await pause(() => charts.every((one) => one.querySelector("svg .background")));
  const wide = (one) => one.querySelector("svg .role-frame > g > .background").getBoundingClientRect().width / one.clientWidth;
  found.charts = charts.every((one) => wide(one) > 0.5) || charts.map((one) => `${one.dataset.study} ${wide(one)}`);
  const machines = ([, select]) => [...select.options].map((one) => one.value);
  const empty = [];
  for (const one of charts) {
    const selects = () => one.querySelectorAll("select");
    for (const machine of machines(selects())) {
      selects()[1].value = machine;
      selects()[1].dispatchEvent(new Event("change"));
      if (selects()[1].value !== machine || !/, [1-9]\d* numbers/.test(one.innerText)) empty.push([one.dataset.study, machine, one.innerText]);
    }
  }
  found.eachMachine = !empty.length || empty;
  const before = document.documentElement.className;
  document.getElementById("theme").click();
  found.themed = document.documentElement.className !== before || before;
  found.silent = faults.length === 0 || faults;
  return found;
}
check().catch((error) => ({ error: String(error) })).then((found) => {
  document.body.append(Object.assign(document.createElement("pre"), { id: "checked", textContent: JSON.stringify(found) }));
});
