/** The casebook's search: hides the entries that lack a word or are of another topic, and says how many are left. */
(() => {
  "use strict";
  const form = document.querySelector("form.ll-cases");
  const cases = [...document.querySelectorAll("section.ll-case")];
  if (!form || !cases.length) return;
  const [words, topic, left] = ["words", "topic", "left"].map((name) => document.getElementById(`ll-cases-${name}`));
  // They stand in every second sentence, and tell nothing about an entry.
  const COMMON = new Set(
    "a an and are as at be but by do does for from has have how i if in is it its my not of on or our s so t than that the then there they this to too was we what when why with you your".split(" "),
  );
  const split = (text) => text.toLowerCase().replace(/[’'`]/g, "").split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const telling = (text) => split(text).filter((word) => !COMMON.has(word));
  const texts = cases.map((one) => {
    const copy = one.cloneNode(true);
    copy.querySelector(".ll-case-code")?.remove();
    return [...new Set(telling(`${copy.textContent} ${one.id}`))];
  });
  // A beginning is enough ("overf"), and so is a word with another ending ("overflows", "nans"); "inf" is no InfoNCE.
  const alike = (word, sought) =>
    (word.startsWith(sought) && !(sought === "inf" && word.startsWith("info"))) || (word.length > 2 && sought.length - word.length < 4 && sought.startsWith(word));
  const has = (i, sought) => texts[i].some((word) => alike(word, sought));
  const lines = new Map(cases.map((one) => [one, document.querySelectorAll(`.page-toc li:has(> a[href="#${CSS.escape(one.id)}"])`)]));
  const parts = [...new Set(cases.map((one) => one.parentElement))];

  function filter() {
    const sought = [...new Set(telling(words.value))];
    const known = sought.filter((word) => cases.some((_, i) => has(i, word)));
    const unknown = sought.filter((word) => !known.includes(word));
    const nothing = sought.length > 0 && known.length === 0;
    let count = 0;
    cases.forEach((one, i) => {
      const shown =
        !nothing && (!topic.value || one.classList.contains(`ll-topic-${topic.value}`)) && known.every((word) => has(i, word));
      one.hidden = !shown;
      for (const line of lines.get(one)) line.hidden = !shown;
      count += shown;
    });
    for (const part of parts) part.classList.toggle("ll-cases-none", !part.querySelector(":scope > section.ll-case:not([hidden])"));
    const odd = unknown.map((word) => `“${word}”`).join(", ");
    const some = count === cases.length ? `All ${count} entries.` : `${count} of ${cases.length} entries.`;
    const none = nothing ? "" : `No entry has all of this; try fewer words${topic.value ? ", or all topics" : ""}.`;
    left.textContent = [count ? some : none, odd && `No entry has ${odd}${count ? "; left out" : ""}.`].filter(Boolean).join(" ");
  }

  function arrive() {
    const target = cases.find((one) => `#${one.id}` === decodeURIComponent(location.hash));
    if (!target?.hidden) return;
    form.reset(); // a link to an entry shows it, whatever was sought before
    filter();
    target.scrollIntoView();
  }

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter)); // once the fields are empty
  addEventListener("hashchange", arrive);
  document.addEventListener("click", (event) => event.target.closest?.('a[href^="#"]') && setTimeout(arrive));
  addEventListener("pageshow", () => (filter(), arrive())); // a browser may bring back what was typed
  form.hidden = false;
  filter();
})();
