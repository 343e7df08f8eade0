if (controls) {
  // On a phone they would push what was found out of sight.
  if (innerWidth < 640) document.getElementById("choices").open = false;
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
  // The address has scrolled past parts that are hidden now.
  scrollTo(0, 0);
  filter();
}
