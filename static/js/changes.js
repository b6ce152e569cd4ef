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

  // Side by side, only the side in which it begins is selected, and so copied.
  root.addEventListener("pointerdown", (event) => {
    const side = event.target.closest("[data-side]")?.dataset.side;
    const table = event.target.closest(".diff-table");
    if (!table) return;
    table.classList.toggle("only-old", side === "old");
    table.classList.toggle("only-new", side === "new");
  });

  if (navigator.clipboard) {
    for (const button of root.querySelectorAll("[data-copy]")) {
      button.hidden = false;
      const words = button.textContent;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = words), 1500);
      });
    }
  }
})();
