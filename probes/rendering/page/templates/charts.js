// Charts: their specifications, drawn by Vega as they come into view.
const ids = new Map(data.models.map(({ label }, id) => [label, id]));
const drawn = id => matching.has(id) && document.querySelector(`[data-draw="${id}"]`).checked;

async function draw(place, width) {
  const spec = structuredClone(data.charts[place.dataset.chart]);
  for (const [name, rows] of Object.entries(spec.datasets)) {
    spec.datasets[name] = rows.filter(row => !ids.has(row.model) || drawn(ids.get(row.model)));
    // Bars have a height for each.
    if (spec.height.step) spec.height = (spec.datasets[name].length + 1) * spec.height.step * 1.25;
  }
  if (spec.autosize) spec.width = width ?? place.clientWidth;
  place.view?.finalize();
  // Expressions are interpreted, since the page forbids to compile them.
  const options = { config: data.config, ast: true, actions: false, renderer: "svg", logLevel: 1 };
  const { view } = await vegaEmbed(place, spec, options);
  place.view = view;
  place.classList.add("done");
}
const watcher = new IntersectionObserver(entries => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting) {
      watcher.unobserve(target);
      draw(target);
    }
  }
}, { rootMargin: "200px" });
function redraw() {
  all("[data-key]").forEach(each => each.classList.toggle("filtered", !drawn(Number(each.dataset.key))));
  for (const place of all("[data-chart]")) {
    place.classList.remove("done");
    watcher.unobserve(place);
    watcher.observe(place);
  }
}
let resized;
window.addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(redraw, 100);
});
