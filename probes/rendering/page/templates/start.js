if (controls) {
  // Not every way of choosing an option gives both.
  for (const kind of ["input", "change"]) controls.addEventListener(kind, filter);
  controls.addEventListener("submit", event => event.preventDefault());
  all("[data-draw]").forEach(box => box.addEventListener("change", redraw));
  all("[data-tick]").forEach(button => button.addEventListener("click", () => {
    for (const box of all("[data-draw]")) {
      if (matching.has(Number(box.dataset.draw))) box.checked = button.dataset.tick === "all";
    }
    redraw();
  }));
  const named = tabs.find(tab => "#" + tab.getAttribute("aria-controls") === location.hash);
  open(named ?? tabs[0]);
  filter();
}
