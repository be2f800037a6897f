// The live price, fields that belong to a choice, and the end of a job. Every page works without it.
"use strict";
(function () {
  const ask = document.getElementById("ask");
  const all = (where, what) => Array.from(where.querySelectorAll(what));

  function toggle(nodes, name, word) {
    for (const node of nodes) node.hidden = !node.dataset[name].split(" ").includes(word);
  }

  if (ask) {
    const kind = ask.querySelector("[data-statistic]");
    const price = document.getElementById("price");
    const amount = document.getElementById("amount");
    const slider = document.getElementById("slider");
    const left = Math.max(Number(ask.dataset.left), 0);
    const budget = Number(ask.dataset.budget);
    let timer = 0;
    let newest = 0;

    const paid = () => (ask.querySelector("input[name=pay]:checked") || { value: "" }).value;
    const shown = () => {
      toggle(all(ask, "[data-when]"), "when", kind.value);
      toggle(all(ask, "[data-pay]"), "pay", paid());
    };
    const look = () => {
      const number = ++newest;
      fetch(ask.dataset.price, {
        method: "POST", credentials: "same-origin", body: new URLSearchParams(new FormData(ask)),
      }).then((r) => r.text().then((text) => [r.ok, text])).then(([ok, text]) => {
        if (ok && number === newest) price.innerHTML = text;
      }).catch(() => {});
    };
    const soon = () => {
      shown();
      clearTimeout(timer);
      if (paid()) timer = setTimeout(look, 150);
    };
    all(ask, "[data-script]").forEach((node) => { node.hidden = false; });
    all(ask, "[data-plain]").forEach((node) => { node.hidden = true; });
    // From a thousandth of the budget to all that is left, in equal ratios.
    slider.addEventListener("input", () => {
      const low = budget / 1000;
      const value = low * Math.pow(Math.max(left, low) / low, Number(slider.value) / 100);
      amount.value = String(Number(value.toPrecision(2)));
      soon();
    });
    ask.addEventListener("input", soon);
    ask.addEventListener("change", soon);
    shown();
    if (paid() && !price.querySelector(".big, .problem")) look();
  }

  for (const choice of all(document, "[data-kind]")) {
    const own = choice.closest("fieldset");
    const set = () => toggle(all(own, "[data-for]"), "for", choice.value);
    choice.addEventListener("change", set);
    set();
  }

  const job = document.getElementById("job");
  if (job && (job.dataset.state === "queued" || job.dataset.state === "running")) {
    const events = new EventSource("/jobs/" + job.dataset.job + "/events");
    events.onmessage = (event) => {
      const said = JSON.parse(event.data);
      if (said.state === "queued" || said.state === "running") {
        document.getElementById("state-words").textContent = said.words;
        return;
      }
      events.close();
      window.location.reload();
    };
  }
})();
