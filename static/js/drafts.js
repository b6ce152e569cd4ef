// What was typed into a form survives signing in again: it stays in this tab until the same person is back at the form.
(() => {
  const KEY = "pratique-draft";
  const read = () => {
    try {
      return JSON.parse(sessionStorage.getItem(KEY) ?? "null");
    } catch {
      return null;
    }
  };
  const keep = (draft) => {
    try {
      if (draft) sessionStorage.setItem(KEY, JSON.stringify(draft));
      else sessionStorage.removeItem(KEY);
    } catch {
      // A browser that keeps nothing behaves as without this file.
    }
  };

  const form = document.querySelector("form[data-draft]");
  const draft = read();
  if (!form) {
    // Only the sign-in page loads this file beside the forms: what was sent did not arrive.
    if (draft) keep({ ...draft, wasInterrupted: true });
    return;
  }
  keep(null);
  const inputs = () =>
    [...form.elements].filter((one) => one.name && one.name !== "csrfmiddlewaretoken" && one.type !== "password");
  const isMine = draft?.owner === form.dataset.draft && draft.path === location.pathname;
  if (draft?.wasInterrupted && isMine) {
    const typed = new Map(draft.fields);
    for (const one of inputs()) {
      if (one.type === "checkbox" || one.type === "radio") one.checked = typed.get(one.name)?.includes(one.value) ?? false;
      else if (typed.has(one.name)) one.value = typed.get(one.name)[0];
    }
    document.querySelector("[data-draft-restored]").hidden = false;
  }
  form.addEventListener("submit", () => {
    const fields = new Map();
    for (const one of inputs()) {
      if ((one.type === "checkbox" || one.type === "radio") && !one.checked) continue;
      fields.set(one.name, [...(fields.get(one.name) ?? []), one.value]);
    }
    keep({ owner: form.dataset.draft, path: location.pathname, fields: [...fields] });
  });
})();
