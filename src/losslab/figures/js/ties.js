/**
 * Tie order: documents with equal labels, and a sort that keeps their order only while every list in the batch is short.
 * Traits: `width` (the longest list in the batch), and what was measured: `widths`, `losses`, `gradients`, `orders` (at each
 * width: documents, best first, as the sort left them), `labels`, `logits`. What should be is what was measured first.
 */
import { NOTE, SIZE, listed, longestOf, mount, num, plural, steps, upOrDown } from "./kit.js";
import { drawLoss, isOff } from "./loss.js";
import { drawPushes, flips } from "./pushes.js";

const name = (doc) => "ABC"[doc];
const HEAD = 130, TILE = 132; // px: a row's name, and a document's tile at most

/** A row's name and note: in the gutter beside the row, or above the row at y. */
function drawHead({ ink, gutter, measure }, key, y, head, note) {
  ink.text(`${key}-head`, 0, gutter ? y + 16 : y - 8, head, "ll-strong");
  const aside = gutter ? [0, y + 35] : [measure(head, SIZE.text, 600) + 10, y - 8];
  ink.text(`${key}-note`, ...aside, note, NOTE);
}

/** A row of documents by rank. Returns where the middle of each document's tile is. */
function drawRow(view, key, y, order, head, note, tile) {
  const { gutter, room } = view;
  drawHead(view, key, y, head, note);
  const pitch = Math.min(TILE + 20, (room - gutter + 12) / order.length), width = pitch - (gutter ? 20 : 12);
  return order.reduce((middles, doc, place) => {
    const x = gutter + place * pitch;
    tile(`${key}-${doc}`, doc, { x: x + 0.5, y: y + 0.5, width: width - 1, height: SIZE.tile - 1, rx: 4 }, x + width / 2);
    return { ...middles, [doc]: x + width / 2 };
  }, {});
}

/** Another query's list as a strip, and our query: as given, as sorted, as it should have been sorted. */
function drawOrders(view, y) {
  const { ink, room, gutter, width, widths, labels, logits, order, best, moved, turn } = view;
  const most = widths.at(-1), top = Math.max(...labels);
  drawHead(view, "other", gutter ? y : y + 22, "Another query", plural(width, "document"));
  const pitch = (room - gutter + 2) / most, at = gutter ? y + 4 : y + 26;
  for (let slot = 0; slot < width; slot++)
    ink(`other-${slot}`, "rect", { x: gutter + slot * pitch + 0.5, y: at + 0.5, width: pitch - 3, height: 17, rx: 2, class: "ll-other" });
  if (turn) {
    const x = gutter + (turn - 0.5) * pitch - 1;
    ink("turn", "path", { d: `M${x} ${at + 22}v6`, class: "ll-zero" });
    const from = `from ${turn} on the order changes`;
    ink.text("turn-name", Math.min(x - 12, room - view.measure(from)), at + 41, from, NOTE);
  }

  const lines = gutter ? 46 : 60;
  y = at + (gutter ? 66 : 84);
  const words = (doc) => `label ${labels[doc]}, logit ${num(logits[doc], 1)}`;
  const document = (key, doc, box, middle) => {
    const strong = labels[doc] === top, on = strong ? "ll-on-best" : "";
    ink(key, "rect", { ...box, class: strong ? "ll-best" : "ll-good" });
    ink.text(`${key}-name`, middle, box.y + 16.5, name(doc), `ll-small ll-strong ${on}`, "middle");
    const fits = labels.every((_, i) => view.measure(words(i)) < box.width - 8);
    ink.text(`${key}-label`, middle, box.y + 32.5, fits ? words(doc) : `label ${labels[doc]}`, `ll-small ${on}`, "middle");
  };
  const given = drawRow(view, "given", y, labels.map((_, doc) => doc), "Our query", "as given", document);
  y += SIZE.tile + lines;
  const sorted = drawRow(view, "sorted", y, order, "Sorted", "best label first", document);
  for (const doc of order) {
    const [from, to, start] = [given[doc], sorted[doc], y - lines + 4], end = y - (gutter ? 4 : 26);
    const bend = (start + end) / 2;
    const d = `M${from} ${start}C${from} ${bend} ${to} ${bend} ${to} ${end}`;
    ink(`line-${doc}`, "path", { d, class: moved.includes(doc) ? "ll-line-wrong" : "ll-line-other" });
  }
  y += SIZE.tile + (gutter ? 16 : 36);
  drawRow(view, "should", y, best, "Should be", "ties as given", (key, doc, box, middle) => {
    ink(key, "rect", { ...box, height: 27, class: "ll-right-outline" });
    ink.text(`${key}-name`, middle, box.y + 18.5, name(doc), "ll-small ll-strong ll-is-right", "middle");
  });
  return y + 28;
}

/** What was measured at a width, beside what should have been. */
function outcome({ width, widths, losses, gradients, orders, labels }) {
  const at = widths.indexOf(width), order = orders[at], best = orders[0], top = Math.max(...labels);
  return {
    width, order, best, loss: losses[at], right: losses[0],
    moved: order.filter((doc, place) => best[place] !== doc).sort(),
    docs: labels.map((label, doc) => ({
      key: doc, name: name(doc), look: label === top ? "ll-best" : "ll-good", is: -gradients[at][doc], aim: -gradients[0][doc],
    })),
  };
}

/** The figure in one sentence. */
function sentence({ width, loss, right, order, best, moved, docs }) {
  const beside = `Beside a list of ${width}`, ranking = order.map(name).join(", ");
  if (!moved.length && !isOff(loss, right))
    return `${beside} the sort leaves tied documents as they were given: our query is ranked ${ranking}, and the loss reads ${num(right)}.`;
  const sort = moved.length ? `the sort moves ${listed(moved.map(name))}, which tie` : "the sort leaves our query as it was";
  const ranked = moved.length ? `it ranks ${ranking} instead of ${best.map(name).join(", ")}` : `it ranks ${ranking}`;
  const turned = docs.filter(flips), [first] = turned;
  const ways = turned.length === 1 ? `${upOrDown(first.is)} instead of ${upOrDown(first.aim)}` : "the wrong way";
  const pushed = turned.length ? `${listed(turned.map((doc) => doc.name))} ${turned.length > 1 ? "are" : "is"} pushed ${ways}` : "no push is turned";
  return `${beside} ${sort}: ${ranked}, the loss reads ${num(loss)} instead of ${num(right)}, and ${pushed}.`;
}

/** Ends of an axis that hold every push at every width, with room for the words beyond the arrows. */
function reach(gradients) {
  const pushes = gradients.flat().map((g) => -g);
  const high = Math.max(0, ...pushes), low = Math.min(0, ...pushes), room = (high - low) * 0.24;
  return [high + room, low - room];
}

function draw(base) {
  const { room, width, widths, losses, gradients, orders } = base;
  const wide = room >= 600, turn = widths.find((_, i) => orders[i].some((doc, place) => orders[0][place] !== doc));
  const view = { ...base, ...outcome(base), turn, gutter: wide ? HEAD : 0 };
  const y = drawOrders(view, 0) + 44;
  const domain = reach(gradients), ticks = [2, 1.5, 1, 0.5, 0, -0.5, -1, -1.5, -2].filter((t) => t <= domain[0] && t >= domain[1]);
  const below = drawPushes(view, { x: 0, y, breadth: wide ? room * 0.5 : room, docs: view.docs, domain, ticks });
  const x = wide ? room * 0.55 : 0;
  const height = drawLoss(view, {
    x, y: wide ? y : below + 40, breadth: room - x,
    widths, losses, width, loss: view.loss, right: view.right,
    ticks: widths.filter((w) => w === turn || w === widths[0] || (w % 10 === 0 && !(Math.abs(w - turn) < 4))),
    words: { note: "sum of its choices", wrong: "ties as the sort left them", right: `ties as given: ${num(view.right)}` },
  });
  return { height, says: sentence(view) };
}

const DATA = ["widths", "losses", "gradients", "orders", "labels", "logits"];

/** Every sentence that the data can lead to. */
function sentences(model) {
  const data = Object.fromEntries(DATA.map((key) => [key, model.get(key)]));
  return data.widths.map((width) => sentence(outcome({ ...data, width })));
}

export default {
  render: ({ model, el }) =>
    mount({
      model, el, draw, longest: longestOf(sentences(model)),
      label: "Our query’s documents as given and as sorted, the push on each score, and the loss at every width of the batch",
      traits: ["width", ...DATA],
      controls: [
        steps("width", { label: "Longest list in the batch", values: model.get("widths"), say: (w) => plural(w, "document") }),
      ],
    }),
};
