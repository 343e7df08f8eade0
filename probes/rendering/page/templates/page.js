// Tabs, filters, sorting and printing.
document.documentElement.classList.add("js");
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), c => c.charCodeAt());
const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
const data = await new Response(unpacked).json();
const controls = document.getElementById("controls");

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
const matching = new Set();
function filter() {
  const words = document.getElementById("search").value.toLowerCase();
  const twins = document.getElementById("random").checked;
  matching.clear();
  data.models.forEach((model, id) => {
    if (model.label.toLowerCase().includes(words) && (twins || !model.random)) matching.add(id);
  });
  const chosen = name => document.getElementById(name)?.value;
  const [group, task] = [chosen("group"), chosen("task")];
  const hide = (name, keeps) => all(`[data-${name}]`).forEach(each => {
    each.classList.toggle("filtered", !keeps(each.dataset[name]));
  });
  hide("model", id => matching.has(Number(id)));
  hide("group", ids => !group || ids.split(" ").includes(group));
  hide("task", name => !task || name === task);
  document.getElementById("count").value = `${matching.size} of ${data.models.length} models`;
  redraw();
}

// On paper there are no tabs and nothing to unfold: everything is drawn, at the paper's width.
let folded = [];
window.addEventListener("beforeprint", () => {
  folded = all("details:not([open])");
  folded.forEach(each => { each.open = true; });
  all("[data-chart]").filter(place => !place.closest(".filtered")).forEach(place => draw(place, 660));
});
window.addEventListener("afterprint", () => {
  folded.forEach(each => { each.open = false; });
  redraw();
});
