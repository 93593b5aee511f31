/** A labelled native list of choices, for options that are too long or too many for radio buttons. */
import { html, uid } from "./kit.js";

/** @param {{label: string, options: [unknown, string][]}} choice  values of the trait, and what each is called */
export const select = (trait, { label, options }) => (link) => {
  const list = html("select", { id: uid() }, ...options.map(([, text]) => html("option", {}, text)));
  list.dataset.lmSuppressShortcuts = "true"; // JupyterLab takes arrow keys for itself elsewhere
  list.addEventListener("change", () => link.set({ [trait]: options[list.selectedIndex][0] }));
  link.watch(trait, () => (list.selectedIndex = options.findIndex(([value]) => value === link.get(trait))));
  return html("div", { class: "ll-control ll-choice" }, html("label", { for: list.id }, label), list);
};
