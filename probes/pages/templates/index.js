// Filters: the address has them, so that a view can be linked to.
const controls = document.getElementById("controls");

function filter() {
  const chosen = Object.fromEntries([...new FormData(controls)].filter(([, value]) => value));
  history.replaceState(null, "", "#" + new URLSearchParams(chosen));
  const { text = "", twins, ...asked } = chosen;
  const names = new Set();
  let any = false;
  for (const section of all("main section")) {
    const fits = Object.entries(asked).every(([name, value]) => section.dataset[name] === value);
    const shown = !fits ? [] : all("tbody tr[data-model]", section).filter(row => {
      const hit = row.dataset.model.toLowerCase().includes(text.toLowerCase());
      const keep = hit && (twins || !row.classList.contains("faint"));
      row.classList.toggle("filtered", !keep);
      return keep;
    });
    shown.forEach(row => names.add(row.dataset.model));
    const keep = shown.length > 0 || (fits && !section.querySelector("tr[data-model]"));
    section.classList.toggle("filtered", !keep);
    any ||= keep;
  }
  document.getElementById("count").value = `${names.size} model${names.size === 1 ? "" : "s"} shown`;
  document.getElementById("none").hidden = any;
}

function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const field of controls.querySelectorAll("[name]")) {
    const value = given.get(field.name) ?? "";
    if (field.type === "checkbox") field.checked = value === field.value;
    else field.value = value;
    if (field.selectedIndex === -1) field.value = "";
  }
  filter();
}
// Not every way of choosing an option gives both.
for (const kind of ["input", "change"]) controls.addEventListener(kind, filter);
controls.addEventListener("submit", event => event.preventDefault());
// The link that skips to the content changes the address as well.
addEventListener("hashchange", () => { if (!location.hash || location.hash.includes("=")) read(); });
read();
