/** What the theme leaves undone: a box that scrolls sideways can be reached by the Tab key, and has a name. */
(() => {
  "use strict";
  const BOXES = "pre, div.math, .cell_output .output, .pst-scrollable-table-container";
  const MARK = "scrolls sideways";

  const name = (box) =>
    box.matches("div.math") ? "Formula" : box.matches("pre") ? "Code" : box.querySelector("table") ? "Table" : "Output";

  function mark() {
    for (const box of document.querySelectorAll(BOXES)) {
      const scrolls = box.scrollWidth > box.clientWidth;
      const marked = (box.getAttribute("aria-label") || "").endsWith(MARK);
      if (scrolls) box.tabIndex = 0;
      if (scrolls === marked) continue;
      if (scrolls) {
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", `${name(box)}, ${MARK}`);
      } else for (const attribute of ["tabindex", "role", "aria-label"]) box.removeAttribute(attribute);
    }
  }
  const watch = new ResizeObserver(mark);
  for (const box of document.querySelectorAll(BOXES)) watch.observe(box);
  document.fonts.ready.then(mark); // formulas grow when their fonts arrive
  addEventListener("toggle", mark, true); // a folded answer that opens
})();
