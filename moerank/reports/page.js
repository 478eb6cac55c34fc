"use strict";
// Columns whose minimum is the best value; for the other columns of numbers, a first click puts the largest value first.
const LEAST = new Set([
  "features", "IGD+", "Holm", "training (s)", "tuning (s)", "given up", "losses", "loss", "worse",
  ...Object.values(JSON.parse(document.getElementById("fronts").textContent)).flatMap((problem) => problem.further),
]);
const isLeast = (name) => LEAST.has(name) || /^p( of |$)/.test(name);

// The number in a cell, NaN if there is none; "< 0.001" comes before all others.
const numberOf = (text) => (text.startsWith("<") ? 0 : parseFloat(text.replaceAll(",", "")));

// Tables: a click on a head sorts by its column, the best first; a second click reverses the order.
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const numeric = table.tBodies[0].rows[0].cells[column].classList.contains("number");
    const name = head.textContent.trim();
    const press = Object.assign(document.createElement("button"), { type: "button", textContent: name });
    head.replaceChildren(press);
    head.classList.toggle("number", numeric);
    press.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : numeric && !isLeast(name);
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const text = (row) => row.cells[column].textContent;
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        if (!numeric) return (down ? -1 : 1) * text(a).localeCompare(text(b));
        const [x, y] = [numberOf(text(a)), numberOf(text(b))];
        if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y); // cells without a number come last
        return down ? y - x : x - y;
      });
      table.tBodies[0].append(...rows);
    });
  });
}

// Downloads: buttons save tables as they are sorted, and figures as they are drawn.
function save(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000); // until then the browser may still read it
}

function button(parent, text, label, pressed) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", textContent: text, className: "save" });
  made.setAttribute("aria-label", label);
  made.addEventListener("click", pressed);
  parent.append(made);
}

// Texts that look like formulas to a spreadsheet begin with a quote.
const quoted = (text) => `"${(/^[=+@\t-]/.test(text) && isNaN(text) ? "'" : "") + text.replaceAll('"', '""')}"`;

// The text of a cell; numbers lose their mark of significance.
function plain(cell) {
  return cell.classList.contains("number") ? cell.textContent.replace("*", "") : cell.textContent;
}

// The rows of a table as CSV; a mean and its standard error become two columns.
function csvOf(table) {
  const rows = [...table.rows].map((row) => [...row.cells].map(plain));
  const twofold = rows[0].map((_, column) => rows.some((row) => row[column].includes(" ± ")));
  const parts = (text, column, head) => {
    if (!twofold[column]) return [text];
    return head ? [text, `${text}, standard error`] : [...text.split(" ± "), ""].slice(0, 2);
  };
  const lines = rows.map((row, i) => row.flatMap((text, column) => parts(text, column, i === 0)).map(quoted).join(","));
  return "\ufeff" + lines.join("\r\n") + "\r\n";
}

for (const box of document.querySelectorAll(".table")) {
  button(box.querySelector(".caption"), "CSV", `Save the table ${box.id} as CSV`, () => {
    save(`${box.id}.csv`, new Blob([csvOf(box.querySelector("table"))], { type: "text/csv" }));
  });
}

const textOf = (figure) => new XMLSerializer().serializeToString(figure.querySelector("svg"));

function savePng(name, text, { width, height }) {
  const image = new Image();
  image.onload = () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 4 * width, height: 4 * height });
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(name, blob), "image/png");
  };
  image.src = "data:image/svg+xml," + encodeURIComponent(text);
}

for (const figure of document.querySelectorAll("figure")) {
  const name = figure.dataset.name;
  const caption = figure.querySelector("figcaption");
  button(caption, "SVG", `Save the figure ${name} as SVG`, () => {
    save(`${name}.svg`, new Blob([textOf(figure)], { type: "image/svg+xml" }));
  });
  button(caption, "PNG", `Save the figure ${name} as PNG`, () => {
    savePng(`${name}.png`, textOf(figure), figure.querySelector("svg").viewBox.baseVal);
  });
}
