// The page of changes by keys: n and p lead from change to change, and on to the next object. Everything else on it,
// these ways included, works without this file.
(() => {
  const KEY = "pratique-single-keys";
  const root = document.querySelector("[data-changes]");
  const toggle = document.querySelector("[data-keys]");
  if (!root) return;

  // Who has switched single keys off (WCAG 2.1.4) has done so in this browser.
  const stored = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };
  let areOn = stored() !== "off";
  const say = () => {
    if (!toggle) return;
    toggle.hidden = false;
    toggle.setAttribute("aria-pressed", String(areOn));
    toggle.textContent = areOn ? "Keys n and p: on" : "Keys n and p: off";
  };
  toggle?.addEventListener("click", () => {
    areOn = !areOn;
    try {
      localStorage.setItem(KEY, areOn ? "on" : "off");
    } catch {
      // A browser that keeps nothing forgets it with the page.
    }
    say();
  });
  say();

  const choose = (row) => {
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "center" });
    const anchor = [...row.querySelectorAll("td[id]")].pop();
    if (anchor) history.replaceState(history.state, "", `#${anchor.id}`);
  };
  const start = () => {
    const here = document.activeElement?.closest("tr") ?? document.getElementById(location.hash.slice(1))?.closest("tr");
    return here && root.contains(here) ? here : null;
  };
  const go = (step) => {
    const rows = [...root.querySelectorAll("[data-change]")];
    const here = start();
    const isBehind = (row) => here && here.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_FOLLOWING;
    const isBefore = (row) => here && here.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_PRECEDING;
    const next = step > 0 ? rows.find((row) => !here || isBehind(row)) : rows.filter(isBefore).pop();
    if (next) choose(next);
    else document.querySelector(`.changes-pages a[rel="${step > 0 ? "next" : "prev"}"]`)?.click();
  };
  document.addEventListener("keydown", (event) => {
    if (!areOn || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    if (event.key === "n") go(1);
    if (event.key === "p") go(-1);
  });

  // Lines that were folded: who opened them goes on at the first one, and is told how many there are.
  const loaded = document.querySelector("[data-loaded]");
  const FAILED = "The lines could not be loaded. Try again, or reload the page.";
  const tell = (rows) => {
    const lines = rows.filter((row) => !row.matches(".gap, .at-line"));
    const gaps = rows.filter((row) => row.matches(".gap"));
    const count = lines.length === 1 ? "1 line loaded" : `${lines.length} lines loaded`;
    if (loaded) loaded.textContent = gaps.length ? `${count}, more are folded` : count;
    return lines;
  };
  let opening = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const gap = event.detail.target;
    const isGap = event.detail.shouldSwap && gap.matches("tr.gap") && root.contains(gap);
    opening = isGap ? { body: gap.parentElement, before: gap.previousElementSibling, after: gap.nextElementSibling } : null;
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.matches?.(".object-lines")) tell([...event.target.querySelectorAll("tbody tr")]);
    if (!opening) return;
    const { body, before, after } = opening;
    opening = null;
    const rows = [...body.children];
    const lines = tell(rows.slice(before ? rows.indexOf(before) + 1 : 0, after ? rows.indexOf(after) : rows.length));
    if (!lines.length) return;
    lines[0].tabIndex = -1;
    lines[0].focus({ preventScroll: true });
  });
  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
    root.addEventListener(name, (event) => {
      const place = event.detail.target.matches("tr.gap") ? event.detail.target.cells[0] : event.detail.target;
      if (place.querySelector("[role=alert]")) return;
      const words = document.createElement("p");
      words.className = "wrong";
      words.setAttribute("role", "alert");
      words.textContent = FAILED;
      place.append(words);
    });
  }

  // Side by side, only the side in which it begins is selected, and so copied.
  root.addEventListener("pointerdown", (event) => {
    const side = event.target.closest("[data-side]")?.dataset.side;
    const table = event.target.closest(".diff-table");
    if (!table) return;
    table.classList.toggle("only-old", side === "old");
    table.classList.toggle("only-new", side === "new");
  });
})();
