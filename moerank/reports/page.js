"use strict";
// Tables: a click on a head sorts by its column, a second one turns the order round.
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[column].dataset.value;
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x !== undefined && y !== undefined) return x - y;
      if (x !== undefined || y !== undefined) return x === undefined ? 1 : -1; // what has no value comes after
      return a.cells[column].textContent.localeCompare(b.cells[column].textContent);
    });
    if (down) rows.reverse();
    table.tBodies[0].append(...rows);
  }));
}
// Fronts: pointing at a member shows its features and metrics, a click offers its model.json.
const fronts = JSON.parse(document.getElementById("fronts").textContent);
for (const { names, members } of Object.values(fronts).flat()) {
  for (const { model } of members) {
    const [columns, weights] = model.features;
    model.features = columns.map((column, i) => ({ name: names[column], column, weight: weights[i] }));
  }
}
const SVG = "http://www.w3.org/2000/svg";
const parts = { train: "#0072B2", validation: "#E69F00", test: "#009E73" };
const dashes = { train: "", validation: "7 3", test: "2 3" }; // told apart in grey, too
function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}
function describe(member, metrics) {
  const lines = Object.keys(parts).map((part) =>
    part + ": " + metrics.map((metric) => metric + " " + member.scores[part][metric].toFixed(4)).join(", "));
  lines.push(...Object.entries(member.objectives || {}).map(([name, value]) => name + " " + value.toPrecision(4)));
  const features = member.model.features.map((f) =>
    f.name + (f.weight === null ? "" : " (" + f.weight.toPrecision(3) + ")")).join(", ");
  return member.model.features.length + " features" + (member.chosen ? ", chosen" : "") + "\n" + lines.join("\n") + "\n" + features;
}
function download(member) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(member.model, null, 1)], { type: "application/json" }));
  link.download = "model.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000); // the browser may still be reading it
}
function draw(box, front) {
  box.querySelector("svg")?.remove();
  if (!front) return;
  const [width, height, left, bottom] = [640, 300, 60, 40];
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" }, box);
  box.append(box.querySelector("output"));
  const metric = front.metrics[0];
  const sizes = front.members.map((m) => m.model.features.length);
  const values = front.members.flatMap((m) => Object.keys(parts).map((part) => m.scores[part][metric]));
  const [low, high, most] = [Math.min(...values), Math.max(...values), Math.max(...sizes)];
  const x = (size) => left + (width - left - 20) * (most > 1 ? (size - 1) / (most - 1) : 0.5);
  const y = (value) => 20 + (height - bottom - 40) * (1 - (value - low) / (high - low || 1));
  const text = (content, attributes) => { element("text", { "font-size": 12, ...attributes }, svg).textContent = content; };
  for (const value of [low, (low + high) / 2, high]) text(value.toFixed(3), { x: 8, y: y(value) + 4 });
  for (const size of [...new Set([1, Math.round(most / 2), most])]) text(size, { x: x(size) - 4, y: height - bottom + 12 });
  element("path", { d: `M${left - 8} 16V${height - bottom}H${width}`, fill: "none", stroke: "#111" }, svg);
  text("number of features", { x: width / 2 - 50, y: height - 8 });
  text(metric, { x: 8, y: 12 });
  Object.entries(parts).forEach(([part, colour], i) => {
    text(part, { x: width - 300 + 110 * i, y: 12 });
    const at = (m) => [x(m.model.features.length), y(m.scores[part][metric])];
    const look = { fill: "none", stroke: colour, "stroke-width": 1.5, "stroke-dasharray": dashes[part] };
    element("polyline", { points: front.members.map((m) => at(m).join(",")).join(" "), ...look }, svg);
    const key = width - 330 + 110 * i; // beside its name in the legend
    element("polyline", { points: `${key},8 ${key + 26},8`, ...look }, svg);
    for (const member of front.members) {
      const [cx, cy] = at(member);
      const dot = element("circle", { cx, cy, r: member.chosen ? 7 : 4, fill: colour, tabindex: 0 }, svg);
      const show = () => { box.querySelector("output").textContent = describe(member, front.metrics); };
      dot.addEventListener("pointerenter", show);
      dot.addEventListener("focus", show);
      dot.addEventListener("click", () => download(member));
      dot.addEventListener("keydown", (event) => { if (event.key === "Enter") download(member); });
    }
  });
}
for (const box of document.querySelectorAll(".explorer")) {
  const mine = fronts[box.dataset.problem] || [];
  if (!mine.length) { box.remove(); continue; }
  const choose = (title, values) => {
    const label = document.createElement("label");
    const choice = document.createElement("select");
    for (const value of new Set(values)) choice.add(new Option(value, value));
    label.append(title, choice, " ");
    box.append(label);
    return choice;
  };
  const solver = choose("What a solver offers: ", mine.map((front) => front.solver));
  const fold = choose("on fold ", mine.map((front) => front.fold).sort((a, b) => a - b));
  const hint = document.createElement("p");
  hint.className = "note";
  hint.textContent = "First seed. Point at a member for its features and values; click it for its model.json.";
  const output = document.createElement("output");
  output.style.whiteSpace = "pre-wrap";
  box.append(hint, output);
  const show = () => {
    const front = mine.find((one) => one.solver === solver.value && String(one.fold) === fold.value);
    output.textContent = front ? "" : "No finished run of this solver on this fold.";
    draw(box, front);
  };
  for (const choice of [solver, fold]) choice.addEventListener("change", show);
  show();
}
