// Completes the names of facts in the expression of a policy or the condition of a rule. Without this file, the table below the form has them.
(() => {
  const input = document.querySelector('textarea[name="expression"], textarea[name="when"]');
  const facts = [...document.querySelectorAll("[data-fact]")].map((row) => ({
    name: row.dataset.fact,
    meaning: row.querySelector("td").textContent.trim(),
  }));
  if (!input || !facts.length) return;

  const list = document.createElement("ul");
  list.id = "fact-names";
  list.className = "proposals";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Facts");
  list.hidden = true;
  input.after(list);
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-haspopup", "listbox");
  input.setAttribute("aria-controls", list.id);
  let chosen = -1; // nothing, until an arrow key chooses: Enter stays a new line

  // The name that is being typed before the cursor, and where it begins.
  const begun = () => {
    const before = input.value.slice(0, input.selectionStart);
    const word = /(?:^|[^\w."'])([a-z_]+)$/.exec(before)?.[1] ?? "";
    return { word, start: before.length - word.length };
  };
  const hide = () => {
    list.hidden = true;
    input.removeAttribute("aria-activedescendant");
  };
  const mark = (place) => {
    chosen = (place + list.children.length) % list.children.length;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
    input.setAttribute("aria-activedescendant", list.children[chosen].id);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  };
  const take = (name) => {
    const { start } = begun();
    input.setRangeText(name, start, input.selectionStart, "end");
    hide();
    input.focus();
  };
  const propose = () => {
    const { word } = begun();
    const found = word ? facts.filter(({ name }) => name.startsWith(word) && name !== word) : [];
    if (!found.length) return hide();
    list.replaceChildren(
      ...found.map(({ name, meaning }, at) => {
        const item = document.createElement("li");
        item.id = `fact-${at}`;
        item.setAttribute("role", "option");
        item.dataset.name = name;
        const code = document.createElement("code");
        code.textContent = name;
        item.append(code, ` ${meaning}`);
        return item;
      }),
    );
    list.hidden = false;
    input.removeAttribute("aria-activedescendant");
    chosen = -1;
  };

  input.addEventListener("input", propose);
  input.addEventListener("blur", hide);
  input.addEventListener("keydown", (event) => {
    if (list.hidden || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowDown") mark(chosen + 1);
    else if (event.key === "ArrowUp") mark(chosen < 0 ? -1 : chosen - 1);
    else if (event.key === "Enter" && chosen >= 0) take(list.children[chosen].dataset.name);
    else if (event.key === "Escape") hide();
    else return;
    event.preventDefault();
  });
  list.addEventListener("mousedown", (event) => {
    event.preventDefault(); // the field keeps the focus
    const item = event.target.closest("[role=option]");
    if (item) take(item.dataset.name);
  });
})();
