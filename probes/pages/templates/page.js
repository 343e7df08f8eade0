// Tabs, filters, charts and printing.
const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), c => c.charCodeAt());
const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
const data = await new Response(unpacked).json();

// Tabs: arrow keys, Home and End move; the address names the part that is open.
const tabs = all("[role=tab]");
function open(tab, focus) {
  for (const each of tabs) {
    const chosen = each === tab;
    each.setAttribute("aria-selected", chosen);
    each.tabIndex = chosen ? 0 : -1;
    document.getElementById(each.getAttribute("aria-controls")).classList.toggle("off", !chosen);
  }
  tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (focus) tab.focus();
  history.replaceState(null, "", "#" + tab.getAttribute("aria-controls"));
}
tabs.forEach((tab, place) => {
  tab.addEventListener("click", () => open(tab));
  tab.addEventListener("keydown", event => {
    const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    open(tabs.at(to % tabs.length), true);
  });
});

// Filters: what they leave out is marked, and is not printed either.
const boxes = all("[data-draw]");
const [hidden, undrawn] = [new Set(), new Set()];
function filter() {
  const chosen = name => document.getElementById(name)?.value;
  const [words, group, task] = [chosen("search").toLowerCase(), chosen("group"), chosen("task")];
  const twins = document.getElementById("random").checked;
  hidden.clear();
  undrawn.clear();
  data.models.forEach(({ label, random }, place) => {
    if (!label.toLowerCase().includes(words) || (random && !twins)) hidden.add(label);
    if (hidden.has(label) || !boxes[place].checked) undrawn.add(label);
  });
  const hide = (selector, hides) => all(selector).forEach(each => {
    each.classList.toggle("filtered", hides(each.dataset, each));
  });
  hide("[data-task], [data-model]", of => (task && of.task && of.task !== task) || hidden.has(of.model));
  hide("[data-group]", (of, each) => {
    const own = all("[data-model]", each);
    const left = !own.length || own.some(x => !x.classList.contains("filtered"));
    return !left || (group && !of.group.split(" ").includes(group));
  });
  document.getElementById("count").value =
    `${data.models.length - hidden.size} of ${data.models.length} models`;
  for (const place of all("[data-chart]")) {
    place.classList.remove("done");
    const rows = Object.values(data.charts[place.dataset.chart].datasets).flat();
    place.parentNode.classList.toggle("empty", rows.every(row => undrawn.has(row.model)));
    watcher.unobserve(place);
    watcher.observe(place);
  }
}

// Charts are drawn as they come into view. Expressions are interpreted, since the page forbids to
// compile them.
function specification(place) {
  const spec = structuredClone(data.charts[place.dataset.chart]);
  for (const [name, rows] of Object.entries(spec.datasets)) {
    spec.datasets[name] = rows.filter(row => !undrawn.has(row.model));
    spec.concat = spec.concat?.filter(panel => spec.datasets[name].some(row => row.place === panel.transform[0].filter.equal));
  }
  if (!spec.concat) delete spec.concat;
  return spec;
}
async function draw(place) {
  place.view?.finalize();
  // Without its mode, Vega-Embed would take charts of several panels for those of Vega.
  const options = { mode: "vega-lite", ast: true, actions: false, renderer: "svg", logLevel: 1 };
  place.view = (await vegaEmbed(place, specification(place), options)).view;
  place.classList.add("done");
}
const watcher = new IntersectionObserver(entries => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    draw(target);
  }
}, { rootMargin: "200px" });

// The numbers of a chart, as its marks say them, in a table that is made when it is unfolded.
const columns = ["panel", "model", "name", "line", "kind", "x", "row", "column", "value", "low", "high", "text", "level", "mark"];
function fill(details) {
  const chart = details.parentNode.querySelector("[data-chart]");
  const rows = Object.values(specification(chart).datasets).flat();
  const heads = columns.filter(name => rows.some(row => ![null, undefined, "", "none"].includes(row[name])));
  const table = document.createElement("table");
  const add = (tag, row, text) => row.appendChild(document.createElement(tag)).textContent = text;
  const head = table.createTHead().insertRow();
  heads.forEach(name => add("th", head, name));
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    const text = x => typeof x !== "number" ? x ?? "" : String(Number.isInteger(x) ? x : +x.toPrecision(4)).replace("-", "−");
    heads.forEach(name => add("td", line, text(row[name])));
  }
  details.replaceChildren(details.firstElementChild, table);
}
all(".numbers").forEach(each => each.addEventListener("toggle", () => each.open && fill(each)));

// On paper there are no tabs and nothing to unfold: everything is drawn.
let folded = [];
window.addEventListener("beforeprint", () => {
  folded = all("details:not([open], .numbers)");
  folded.forEach(each => { each.open = true; });
  all("[data-chart]:not(.done)").filter(place => !place.closest(".filtered")).forEach(draw);
});
window.addEventListener("afterprint", () => folded.forEach(each => { each.open = false; }));

const controls = document.getElementById("controls");
if (controls) {
  // On a phone they would push what was found out of sight.
  if (innerWidth < 640) document.getElementById("choices").open = false;
  // Not every way of choosing an option gives both.
  for (const kind of ["input", "change"]) addEventListener(kind, filter);
  controls.addEventListener("submit", event => event.preventDefault());
  all("[data-tick]").forEach(button => button.addEventListener("click", () => {
    boxes.forEach(box => {
      if (!hidden.has(box.dataset.draw)) box.checked = Boolean(button.dataset.tick);
    });
    filter();
  }));
  const named = tabs.find(tab => "#" + tab.getAttribute("aria-controls") === location.hash);
  open(named ?? tabs[0]);
  // The address has scrolled past parts that are hidden now.
  scrollTo(0, 0);
  filter();
}
