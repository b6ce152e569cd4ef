// Keys in lists: j and k move, Enter opens. Everything works without this file.
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, button, a, summary");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...document.querySelectorAll("table[data-keys] tbody tr")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("chosen"));
  if (event.key === "j" || event.key === "k") {
    const next = Math.min(Math.max(at + (event.key === "j" ? 1 : -1), 0), rows.length - 1);
    rows.forEach((row, index) => row.classList.toggle("chosen", index === next));
    rows[next].scrollIntoView({ block: "nearest" });
  } else if (event.key === "Enter" && at >= 0) {
    rows[at].querySelector("a")?.click();
  }
});
