// Charts: the data, handed to the plotting library as they come into view.
const drawn = id => matching.has(id) && document.querySelector(`[data-draw="${id}"]`).checked;
const grey = "#808890";
const dashes = ["solid", "dash", "dashdot", "dot"];
const number = digits => `:.${digits}f`;

function lines(chart) {
  const traces = [];
  for (const s of chart.series) {
    const { name, symbol, random, ...model } = data.models[s.m];
    const place = chart.lines.indexOf(s.line);
    const colour = chart.shades[place] ?? model.colour;
    const banded = s.l.every(value => value !== null);
    const f = number(chart.digits);
    const dash = s.line && !chart.shades.length ? dashes[place] : random ? "dot" : "solid";
    if (banded) {
      traces.push({
        x: [...s.x, ...s.x.toReversed()], y: [...s.h, ...s.l.toReversed()], meta: s.m,
        fill: "toself", fillcolor: colour, opacity: 0.18, mode: "none", hoverinfo: "skip",
      });
    }
    traces.push({
      x: s.x, y: s.y, meta: s.m, name: s.line ? `${name}, ${s.line}` : name, customdata: s.x.map((_, i) => [s.l[i], s.h[i]]),
      mode: "lines+markers",
      line: { color: colour, width: 2, dash },
      marker: { color: colour, size: 7, symbol: symbol + (random ? "-open" : "") },
      hovertemplate: `%{y${f}}` + (banded ? ` [%{customdata[0]${f}}, %{customdata[1]${f}}]` : ""),
    });
  }
  return traces;
}

// Levels far below the curves would flatten them; they are named at the lower edge instead.
function withLevels(chart, layout, traces) {
  const seen = traces.filter(trace => drawn(trace.meta)).flatMap(trace => trace.y);
  if (!seen.length) return;
  let [low, high] = [Math.min(...seen), Math.max(...seen)];
  const span = high - low || 1;
  const near = chart.levels.filter(([, y]) => y > low - span && y < high + span);
  for (const [name, y] of near) {
    [low, high] = [Math.min(low, y), Math.max(high, y)];
    layout.shapes.push({
      type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, layer: "below",
      line: { color: grey, width: 1.5, dash: "dash" },
    });
    layout.annotations.push({
      xref: "paper", x: 1, xanchor: "right", y, yanchor: "bottom", text: name, showarrow: false,
    });
  }
  const far = chart.levels.filter(level => !near.includes(level));
  const text = far.map(([name, y]) => `${y < low ? "↓" : "↑"} ${name} ${y.toFixed(chart.digits)}`);
  layout.annotations.push({
    xref: "paper", yref: "paper", x: 0, xanchor: "left", y: 0, yanchor: "bottom",
    text: text.join(" · "), showarrow: false,
  });
  const room = (high - low || span) * 0.06;
  layout.yaxis.range = [low - room * (far.length ? 2.5 : 1), high + room];
}

function bars(chart) {
  const traces = [];
  for (const s of chart.series) {
    const { name, colour, symbol, random } = data.models[s.m];
    const known = s.e.map((value, i) => value !== null && s.l[i] !== null);
    const common = { y: chart.tasks, meta: s.m, name, offsetgroup: s.m, orientation: "h" };
    traces.push({
      ...common, type: "bar", x: s.e,
      marker: { color: colour, opacity: random ? 0.45 : 0.85 },
      error_x: {
        type: "data", symmetric: false, thickness: 1.5, width: 4,
        array: s.e.map((value, i) => (known[i] ? s.h[i] - value : 0)),
        arrayminus: s.e.map((value, i) => (known[i] ? value - s.l[i] : 0)),
      },
      customdata: s.e.map((_, i) => (known[i] ? ` [${s.l[i].toFixed(2)}, ${s.h[i].toFixed(2)}]` : "")),
      hovertemplate: "%{fullData.name}<br>expected layer %{x:.2f}%{customdata}<extra></extra>",
    }, {
      ...common, type: "scatter", mode: "markers", x: s.g,
      marker: { color: colour, size: 11, symbol, line: { width: 2, color: "#fff" } },
      hovertemplate: "%{fullData.name}<br>centre of gravity %{x:.2f}<extra></extra>",
    }, {
      ...common, type: "scatter", mode: "text", x: s.undefined.map(is => (is ? 0.06 : null)), text: "×",
      hovertemplate: "%{fullData.name}<br>expected layer undefined<extra></extra>",
    });
  }
  return traces;
}

// Points without units: both axes of one scale, colours by level or else by group.
function plane(place, chart, width) {
  const [low, high] = chart.span;
  const traces = chart.series.map(s => {
    const leveled = s.level.some(level => level !== null);
    return {
      x: s.x, y: s.y, text: s.text, textposition: s.side, mode: "markers+text", name: s.name, hovertext: s.hover,
      hovertemplate: "%{hovertext}" + (leveled ? `<br>${chart.scale} %{marker.color}` : "") + "<extra></extra>",
      textfont: { size: 10 },
      marker: { symbol: s.symbol, size: 8, ...(leveled ? { color: s.level, coloraxis: "coloraxis" } : { color: s.colour }) },
    };
  });
  const axis = { visible: false, fixedrange: true };
  const layout = {
    width, autosize: !width, height: 440, margin: { l: 4, r: 4, t: 4, b: 4 }, dragmode: false, hovermode: "closest",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12 },
    showlegend: traces.length > 1, legend: { orientation: "h", y: 0, yanchor: "top" },
    xaxis: { ...axis, range: chart.x, scaleanchor: "y", constrain: "domain" }, yaxis: { ...axis, range: chart.y },
    coloraxis: {
      cmin: low, cmax: high, colorscale: data.shades.map((colour, i) => [i / (data.shades.length - 1), colour]),
      colorbar: { title: { text: chart.scale }, thickness: 10, outlinewidth: 0 },
    },
  };
  Plotly.react(place, traces, layout, { displayModeBar: false, responsive: true });
  place.classList.toggle("leveled", chart.scale !== "");
  place.classList.add("done");
}

const last = chart => Math.max(...chart.series.flatMap(s => s.x ?? [...s.g, ...s.h]));

function draw(place, width) {
  const chart = data.charts[place.dataset.chart];
  if (chart.kind === "plane") return plane(place, chart, width);
  const isBars = chart.kind === "bars";
  const traces = isBars ? bars(chart) : lines(chart);
  for (const trace of traces) trace.visible = drawn(trace.meta);
  const count = new Set(traces.filter(trace => trace.visible).map(trace => trace.meta)).size;
  const layout = {
    width, autosize: !width, height: isBars ? 110 + chart.tasks.length * (24 + 20 * count) : 300,
    margin: { l: 56, r: 12, t: 12, b: 44 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12 },
    showlegend: false, hovermode: isBars ? "closest" : "x unified", dragmode: false,
    barmode: "group", shapes: [], annotations: [],
    xaxis: { title: { text: isBars ? "layer" : chart.what }, dtick: chart.log ? 1 : Math.ceil(last(chart) / 14) || 1, type: chart.log ? "log" : "linear", showgrid: isBars, zeroline: false },
    yaxis: { title: { text: isBars ? "" : chart.axis }, automargin: true, zeroline: false },
  };
  if (isBars) Object.assign(layout, { scattermode: "group" }).xaxis.rangemode = "tozero";
  else {
    layout.xaxis.unifiedhovertitle = { text: `${chart.what} %{x}` };
    withLevels(chart, layout, traces);
  }
  if (isBars) layout.yaxis.autorange = "reversed";
  Plotly.react(place, traces, layout, { displayModeBar: false, responsive: true });
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
