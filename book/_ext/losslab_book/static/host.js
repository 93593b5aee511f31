/**
 * Puts live figures on a static page: no kernel, no module loader, no request. A figure's module asks for a model with get, set,
 * save_changes, on and off, as Jupyter would give it; here a model is a plain object that remembers who listens.
 */
(() => {
  "use strict";

  class Model {
    #state;
    #listeners = new Map();
    constructor(state) {
      this.#state = state;
    }
    get(name) {
      return this.#state[name];
    }
    set(name, value) {
      if (typeof name === "object") {
        for (const key in name) this.set(key, name[key]);
      } else if (this.#state[name] !== value) {
        this.#state[name] = value;
        this.#tell("change:" + name, value);
        this.#tell("change");
      }
    }
    save_changes() {}
    send() {}
    on(names, react) {
      for (const name of names.split(" ")) {
        if (!this.#listeners.has(name)) this.#listeners.set(name, []);
        this.#listeners.get(name).push(react);
      }
    }
    off(names, react) {
      if (!names) return this.#listeners.clear();
      for (const name of names.split(" ")) {
        const stay = react ? (this.#listeners.get(name) || []).filter((listener) => listener !== react) : [];
        this.#listeners.set(name, stay);
      }
    }
    #tell(name, value) {
      for (const react of [...(this.#listeners.get(name) || [])]) react(this, value);
    }
  }

  /** Says what happened and shows the still picture that waits inside <noscript>. */
  function fail(place, error) {
    console.error(error);
    const message = document.createElement("p");
    message.className = "ll-failed";
    message.setAttribute("role", "alert");
    message.textContent = `This figure cannot answer here (${error.message}). What you see is its first state.`;
    const still = document.createElement("div");
    const waiting = place.parentElement.querySelector("noscript");
    if (waiting) still.innerHTML = waiting.textContent;
    place.replaceChildren(message, still);
  }

  const models = new Map();
  const figures = (globalThis.losslab && globalThis.losslab.figures) || {};

  /** Two views with one number are two views of one model. */
  function modelOf(figure) {
    const number = figure.dataset.model;
    if (!models.has(number)) {
      const first = document.querySelector(`.ll-figure[data-model="${number}"] > script[type="application/json"]`);
      models.set(number, new Model(JSON.parse(first.textContent)));
    }
    return models.get(number);
  }

  async function show(figure) {
    const place = figure.querySelector(".ll-place");
    try {
      const drawing = figures[figure.dataset.figure];
      if (!drawing) throw new Error(`no drawing is named “${figure.dataset.figure}”`);
      const model = modelOf(figure);
      await drawing.render({ model, el: place });
      figure.dataset.live = ""; // tests wait for it
    } catch (error) {
      fail(place, error);
    }
  }

  for (const figure of document.querySelectorAll(".ll-figure")) show(figure);
})();
