document.documentElement.classList.add("js");
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Sorting: numbers descend at first, names and ranks ascend; what has no score comes last.
function sort(head) {
  const body = head.closest("table").tBodies[0];
  const value = row => row.cells[head.cellIndex].dataset.value;
  const numeric = [...body.rows].every(row => !isNaN(value(row)));
  const old = head.getAttribute("aria-sort");
  const up = old ? old === "descending" : !numeric || head.textContent.endsWith("rank");
  const order = (a, b) => (numeric ? a - b : a.localeCompare(b)) * (up ? 1 : -1);
  const rows = [...body.rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return x === "" || y === "" ? (x === "") - (y === "") : order(x, y);
  });
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.append(...rows);
}
// Tables that are wider than their place fade out where they go on.
for (const box of all(".scroll")) {
  const mark = () => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  box.addEventListener("scroll", mark);
  new ResizeObserver(mark).observe(box);
}
for (const button of all(".sortable thead button")) {
  button.addEventListener("click", () => sort(button.closest("th")));
}
