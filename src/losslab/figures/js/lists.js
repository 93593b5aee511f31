/** A padded batch of two queries, slot by slot. */
import { NOTE, SIZE, num, plural } from "./kit.js";

/** Documents of our query, best first. */
export const NAMES = ["A", "B"];
export const LOOKS = ["ll-best", "ll-good"];
export const LOGIT_A = 1.5;
export const WIDTHS = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
export const MOST = WIDTHS.at(-1);

/** A row's name and note: in the gutter beside the row, or on a line above it. Returns the y at which the row starts. */
export function rowHead({ ink, gutter, measure }, key, y, name, note) {
  ink.text(`${key}-name`, 0, gutter ? y + 16 : y + 14, name, "ll-strong");
  const [x, dy] = gutter ? [0, 35] : [measure(name, SIZE.text, 600) + 10, 14];
  ink.text(`${key}-note`, x, y + dy, note, NOTE);
  return gutter ? y : y + 24;
}

/** Places the tiles of both rows: twelve slots share the room that the gutter leaves. */
function slots(view) {
  const { ink, room, gutter } = view;
  const gap = gutter ? 6 : 4;
  const pitch = (room - gutter + gap) / MOST;
  const side = pitch - gap;
  const x = (slot) => gutter + slot * pitch;
  const tile = (key, slot, y, look) =>
    ink(key, "rect", { x: x(slot) + 0.5, y: y + 0.5, width: side - 1, height: SIZE.tile - 1, rx: 4, ...look });
  const write = (key, slot, y, text, look) => ink.text(key, x(slot) + side / 2, y, text, `ll-small ${look}`, "middle");
  return { x, side, tile, write };
}

/** Our query's two documents and its empty slots. Hatching marks the slots that are summed. Returns the y below. */
export function drawOurs(view, y, note, counted) {
  const { ink, room, gutter, width, padding, fixed, measure } = view;
  const { x, side, tile, write } = slots(view);
  y = rowHead(view, "ours", y, "Our query", note);
  view.logits.forEach((z, i) => {
    const on = i === 0 ? "ll-on-best" : "";
    tile(`ours-${i}`, i, y, { class: LOOKS[i] });
    write(`ours-${i}-name`, i, y + 17, NAMES[i], `ll-strong ${on}`);
    write(`ours-${i}-logit`, i, y + 33, num(z, 1), on);
  });
  for (let slot = 2; slot < width; slot++)
    tile(`ghost-${slot}`, slot, y, { class: "ll-ghost ll-appear", fill: fixed ? "none" : view.hatch });
  y += SIZE.tile;
  if (padding) {
    const text = `${plural(padding, "empty slot")}${padding > 1 ? ", each" : ""} ${counted}`;
    ink("bracket", "path", { d: `M${x(2)} ${y + 5}v5H${x(width - 1) + side}v-5`, class: "ll-ghost ll-solid", fill: "none" });
    ink.text("ghost-note", Math.max(gutter, Math.min(x(2), room - measure(text))), y + 27, text);
  }
  return y + 32;
}

/** Another query's documents. Returns the y below. */
export function drawOther(view, y) {
  const { width } = view;
  const { tile, write } = slots(view);
  y = rowHead(view, "other", y, "Another query", plural(width, "document"));
  for (let slot = 0; slot < width; slot++) {
    tile(`other-${slot}`, slot, y, { class: "ll-other ll-appear" });
    write(`other-${slot}-name`, slot, y + 25, slot + 1, "ll-muted ll-appear");
  }
  return y + SIZE.tile;
}
