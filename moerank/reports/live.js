"use strict";
// The page of a run: it reads the state that stands in a file beside it, once a second, until the run has ended.
const [box, share, said, age] = ["live", "share", "said", "age"].map((id) => document.getElementById(id));
let state, explorer, drawn;

function live(next) {
  state = next;
  const { runs, ...kind } = state.fronts ?? {};
  const same = drawn === JSON.stringify(kind);
  drawn = JSON.stringify(kind);
  Object.assign(share, { hidden: state.ended, value: state.share });
  said.textContent = state.said;
  box.hidden = !state.fronts;
  if (same && runs) explorer.update(runs);
  else if (runs) {
    box.replaceChildren();
    explorer = new Explorer(box, { name: document.title, ...state.fronts });
  }
  tell();
}

function tell() {
  const seconds = Math.round(Date.now() / 1000 - state.time);
  age.textContent = state.ended || seconds < 5 ? "" : `${seconds} seconds ago`;
}

function read() {
  tell();
  if (state.ended) return clearInterval(reading);
  const script = Object.assign(document.createElement("script"), { src: `${box.dataset.beside}?${Date.now()}` });
  script.onload = () => script.remove();
  document.head.append(script);
}

live(problems);
const reading = setInterval(box.dataset.beside ? read : tell, 1000);
