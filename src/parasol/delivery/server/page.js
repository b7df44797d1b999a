(() => {
  "use strict";
  // links and calls are relative to the folder of this page; a name and password in its address belong in no call
  const base = new URL(".", location.href);
  base.username = base.password = base.search = base.hash = "";
  const address = base.href.replace(/\/$/, "");
  for (const code of document.querySelectorAll(".call code"))
    code.textContent = code.textContent.replaceAll("http://HOST:PORT", address);
  for (const button of document.querySelectorAll(".call button"))
    button.addEventListener("click", () => {
      // the clipboard of navigator is only there for https and this machine
      getSelection().selectAllChildren(button.parentElement.querySelector("code"));
      button.textContent = document.execCommand("copy") ? "Copied" : "Now Ctrl-C";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  const shown = 20000;
  for (const form of document.querySelectorAll("form.try"))
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const out = form.querySelector("output"), body = form.querySelector("textarea"), start = performance.now();
      const options = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: body.value } : {};
      out.textContent = "…";
      try {
        const response = await fetch(new URL(form.dataset.path, base), options), text = await response.text();
        const head = `${response.status}, ${Math.round(performance.now() - start)} ms, ${text.length} characters`;
        const cut = text.length > shown ? `\n… the first ${shown} characters are shown` : "";
        out.textContent = `${head}\n\n${text.slice(0, shown)}${cut}`;
      } catch (error) {
        out.textContent = `There was no answer: ${error.message}`;
      }
    });
})();
