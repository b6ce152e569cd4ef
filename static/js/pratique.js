// Keys of every page. All that they do can be done without this file.
(() => {
  const KEY = "pratique-single-keys";
  const stored = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };
  const areOn = () => stored() !== "off";
  const help = document.getElementById("keys-help");

  // Shortcuts of a single character can be switched off for the whole site (WCAG 2.1.4).
  const switches = [...document.querySelectorAll("[data-single-keys]")];
  const say = () => {
    for (const one of switches) {
      one.hidden = false;
      one.setAttribute("aria-pressed", String(areOn()));
      one.textContent = areOn() ? "Single-key shortcuts: on" : "Single-key shortcuts: off";
    }
  };
  for (const one of switches) {
    one.addEventListener("click", () => {
      try {
        localStorage.setItem(KEY, areOn() ? "off" : "on");
      } catch {
        // A browser that keeps nothing leaves them on.
      }
      say();
    });
  }
  say();

  document.querySelector("[data-help]")?.addEventListener("click", (event) => {
    if (!help?.showModal) return;
    event.preventDefault();
    help.showModal();
  });

  const rows = () => [...document.querySelectorAll("table[data-keys] tbody tr")].filter((row) => row.querySelector("a"));
  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.contains(document.activeElement));
    const next = at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1);
    const link = all[next].querySelector("a");
    link.focus();
    link.scrollIntoView({ block: "nearest" });
  };

  // Of the row in which the focus is: tick it, or ask for a decision on what is ticked. The next page asks once more.
  const boxOfRow = () => document.activeElement?.closest("tr")?.querySelector('input[name="picked"]');
  const tick = () => boxOfRow()?.click();
  const ask = (decision) => {
    const form = document.getElementById("bulk");
    const button = form?.querySelector(`button[value="${decision}"]`);
    if (!button) return;
    if (!document.querySelector('input[name="picked"]:checked')) tick();
    if (!document.querySelector('input[name="picked"]:checked')) return;
    const reason = form.elements.namedItem("reason");
    if (decision === "Deny" && !reason.value.trim()) reason.focus();
    else form.requestSubmit(button);
  };

  // To the decision of this request; from elsewhere to the first request of the list, or to the list.
  const decide = () => {
    const form = document.querySelector("#review-form, [data-decision]");
    const target = form?.querySelector("textarea, input:not([type=hidden]), button") ?? form;
    if (target) {
      target.focus();
      target.scrollIntoView({ block: "center" });
      return;
    }
    const link = rows()[0]?.querySelector('a[href^="/requests/"]');
    location.assign(link ? link.href : "/?tab=needs-me");
  };
  const go = (key) => {
    if (key === "d") return decide();
    if (key === "m") return document.querySelector("a.who")?.click();
    document.querySelector(`[data-go="${CSS.escape(key)}"]`)?.click();
  };

  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input:not([type=checkbox]), textarea, select, dialog");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !areOn()) return;
    const wasGoing = isGoing;
    isGoing = false;
    if (wasGoing && /^[a-z]$/.test(event.key)) {
      event.preventDefault();
      go(event.key);
    } else if (event.key === "g") {
      isGoing = true;
      setTimeout(() => (isGoing = false), 1500);
    } else if (event.key === "j" || event.key === "k") {
      move(event.key === "j" ? 1 : -1);
    } else if (event.key === "x") {
      tick();
    } else if (event.key === "a" || event.key === "d") {
      ask(event.key === "a" ? "Approve" : "Deny");
    } else if (event.key === "/") {
      const search = document.querySelector('main input[type="search"]');
      if (!search) return;
      event.preventDefault();
      search.focus();
    } else if (event.key === "?" && help?.showModal) {
      event.preventDefault();
      help.showModal();
    }
  });

  // One box ticks all rows of its table; it is shown where this file runs, also in a list that has just been renewed.
  const showSelectAll = () => document.querySelectorAll("[data-select-all]").forEach((one) => (one.hidden = false));
  showSelectAll();
  document.addEventListener("htmx:afterSwap", showSelectAll);
  document.addEventListener("change", (event) => {
    const boxes = [...(event.target.closest?.("table")?.querySelectorAll('input[name="picked"]') ?? [])];
    const all = event.target.closest?.("table")?.querySelector("[data-select-all]");
    if (!all || !boxes.length) return;
    if (event.target === all) boxes.forEach((one) => (one.checked = all.checked));
    const ticked = boxes.filter((one) => one.checked).length;
    all.checked = ticked === boxes.length;
    all.indeterminate = ticked > 0 && !all.checked;
  });

  // A button copies what it names, else the code beside it, and says so. It is shown where the browser lets a page copy.
  const COPIED_MILLISECONDS = 2000;
  if (navigator.clipboard) {
    const told = document.createElement("p");
    told.className = "sr";
    told.setAttribute("role", "status");
    document.getElementById("main")?.append(told);
    const showCopy = () => document.querySelectorAll("[data-copy]").forEach((one) => (one.hidden = false));
    showCopy();
    document.addEventListener("htmx:afterSwap", showCopy);
    const tell = (label, words, after) => {
      label.data = words;
      told.textContent = after;
    };
    document.addEventListener("click", async (event) => {
      const button = event.target.closest?.("[data-copy]");
      if (!button) return;
      const label = button.firstChild;
      button.dataset.words ??= label.data;
      try {
        await navigator.clipboard.writeText(button.dataset.copy || button.parentElement.querySelector("pre").textContent);
        tell(label, "Copied", "Copied");
      } catch {
        tell(label, "Not copied", "Not copied: select the text and copy it yourself.");
      }
      setTimeout(() => tell(label, button.dataset.words, ""), COPIED_MILLISECONDS);
    });
  }

  // Enter in the name of a key adds it, and does not send the form. The form shows the name where this file runs.
  const keyOfConfig = document.querySelector("[data-config-key]");
  if (keyOfConfig) keyOfConfig.hidden = false;
  keyOfConfig?.querySelector("input").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    keyOfConfig.querySelector("button").click();
  });

  // A list that follows what happens stays as it is while somebody has ticked rows in it, and asks for nothing while
  // nobody sees it; it is renewed when somebody comes back.
  for (const name of ["htmx:beforeRequest", "htmx:beforeSwap"]) {
    document.addEventListener(name, (event) => {
      const part = event.detail.target ?? event.target;
      if (!part.matches?.("[data-followed]")) return;
      if (document.hidden || part.querySelector("input:checked")) event.preventDefault();
    });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    for (const part of document.querySelectorAll("[data-followed]")) part.dispatchEvent(new Event("look-again"));
  });

  // Times are chosen in the zone of the browser, which the form says with them; without this file in UTC.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const hidden of zone ? document.querySelectorAll("[data-zone]") : []) {
    hidden.value = zone;
    hidden.closest(".field").querySelector("[data-zone-words]").textContent = zone;
    const input = hidden.closest(".field").querySelector("[data-utc]");
    if (!input) continue;
    const at = new Date(input.dataset.utc);
    input.value = new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
  }
})();
