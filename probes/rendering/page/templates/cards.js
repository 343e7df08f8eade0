// Cards of cells, and pictures, whose numbers are drawn as colours.
const cardOf = button => {
  const { cards, pictures } = data.cards[button.closest(".panel").id];
  const card = cards[button.dataset.card];
  return { ...card, picture: card.picture === null ? null : pictures[card.picture] };
};

// By the square root of the place on the scale, so that faint structure shows.
function paint(canvas, values, low, high) {
  canvas.width = values[0].length;
  canvas.height = values.length;
  const context = canvas.getContext("2d");
  values.forEach((row, y) => row.forEach((value, x) => {
    if (value === null) return;
    const place = high > low ? Math.sqrt(Math.min(Math.max((value - low) / (high - low), 0), 1)) : 0;
    context.fillStyle = data.shades[Math.round(place * (data.shades.length - 1))];
    context.fillRect(x, y, 1, 1);
  }));
}

function paintAll(gallery) {
  const { low, high } = gallery.dataset;
  for (const button of all("[data-card]", gallery)) {
    paint(button.querySelector("canvas"), cardOf(button).picture, Number(low), Number(high));
  }
  gallery.classList.add("done");
}
const galleries = all(".gallery");
const viewer = new IntersectionObserver(entries => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    viewer.unobserve(target);
    paintAll(target);
  }
}, { rootMargin: "200px" });
galleries.forEach(gallery => viewer.observe(gallery));
window.addEventListener("beforeprint", () => galleries.forEach(paintAll));

const short = value => Number(value.toPrecision(2));

// The browser gives the focus back to the cell, and closes the card with Escape.
const dialog = document.getElementById("card");
function show({ title, lines, picture }) {
  dialog.querySelector("h3").textContent = title;
  dialog.querySelector("tbody").replaceChildren(...lines.map(([name, value]) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = name;
    row.append(head);
    row.insertCell().textContent = value;
    return row;
  }));
  const figure = dialog.querySelector("figure");
  figure.hidden = picture === null;
  if (picture !== null) {
    const known = picture.flat().filter(value => value !== null);
    const [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
    const canvas = figure.querySelector("canvas");
    paint(canvas, picture, low, high);
    canvas.setAttribute("aria-label", `${picture.length} × ${picture[0].length} numbers as colours`);
    figure.querySelector("figcaption").textContent = `Dark ${short(low)} to bright ${short(high)}, square-root scale.`;
  }
  dialog.showModal();
}
document.addEventListener("click", event => {
  const button = event.target.closest("[data-card]");
  if (button) show(cardOf(button));
  else if (event.target === dialog) dialog.close();
});
